"""Elements by tensors of indices."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.autograd.layout import broadcast, preserved_strides
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators.fills import filled
from buddysim.training.autograd.tensor import Tensor


class IndexBackward0(GraphNode):
    """Adds gradients up where their elements came from, in zeros."""

    __slots__ = ("dtype", "shape")
    name = "IndexBackward0"

    def __init__(self, x: Tensor, indices: Sequence[Tensor], result: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.shape, self.dtype = x.shape, x.dtype
        for one in indices:
            self.save("indices", one)
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        result = filled(self.shape, self.dtype, "new_zeros", self.tape)
        self.tape.launch("_index_put_impl_", (result, *self.saved, gradient), (result,))
        return (result,)


def index(x: Tensor, *indices: Tensor) -> Tensor:
    """``x[i, j, ..]``: elements of the first dimensions by integers, all of them of one shape or broadcast to it."""
    tape = x.storage.tape
    shape = indices[0].shape
    for one in indices[1:]:
        shape = broadcast(shape, one.shape)
    result = tape.empty((*shape, *x.shape[len(indices) :]), x.dtype, "index")
    tape.launch("index", (x, *indices), (result,))
    if x.records:
        IndexBackward0(x, indices, result)
    return result


class GatherBackward0(GraphNode):
    """Adds gradients up where their elements came from, in zeros; PyTorch saves the tensor for its shape."""

    __slots__ = ()
    name = "GatherBackward0"

    def __init__(self, x: Tensor, indices: Tensor, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x,))
        self.save("self", x)
        self.save("index", indices)
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        x, indices = self.saved
        result = filled(x.shape, gradient.dtype, "new_zeros", self.tape)
        self.tape.launch("scatter_add_", (result, indices, gradient), (result,))
        return (result,)


def gather(x: Tensor, indices: Tensor) -> Tensor:
    """An element for each index along a dimension."""
    tape = x.storage.tape
    result = tape.empty(indices.shape, x.dtype, "gather")
    tape.launch("gather", (x, indices), (result,))
    if x.records:
        GatherBackward0(x, indices, result)
    return result


class ScatterBackward0(GraphNode):
    """Reads the source's gradient at the indices."""

    __slots__ = ()
    name = "ScatterBackward0"

    def __init__(self, x: Tensor, indices: Tensor, source: Tensor) -> None:
        super().__init__(x.storage.tape, (x, source))
        self.save("index", indices)
        self.returns(x)

    def backward(self, gradient: Tensor) -> Gradients:
        (indices,) = self.saved
        return None, gather(gradient, indices)


def scatter_(x: Tensor, indices: Tensor, source: Tensor | None = None) -> Tensor:
    """Write a number, or elements of a source, at each index along a dimension of a tensor that isn't trained."""
    written = (x, indices) if source is None else (x, indices, source)
    x.storage.tape.launch("scatter_", written, (x,))
    if source is not None and source.records:
        ScatterBackward0(x, indices, source)
    return x


def index_put_(x: Tensor, indices: Tensor, values: Tensor) -> Tensor:
    """``x[indices] = values``. Without a gradient."""
    x.storage.tape.launch("index_put_", (x, indices, values), (x,))
    x.producer = "index_put_"
    return x


def index_add(x: Tensor, indices: Tensor, rows: Tensor) -> Tensor:
    """A tensor with rows added where the indices say.

    The sum is a new tensor; the rows' gradient is read at the indices, the tensor's is the sum's.
    """
    tape = x.storage.tape
    result = tape.empty(x.shape, x.dtype, "index_add", preserved_strides(x.shape, x.strides))
    tape.launch("index_add", (x, indices, rows), (result,))
    if x.records or rows.records:
        IndexAddBackward0(x, indices, rows, result)
    return result


class IndexAddBackward0(GraphNode):
    """Reads the rows' gradient at the indices; PyTorch saves the rows for their shape."""

    __slots__ = ()
    name = "IndexAddBackward0"

    def __init__(self, x: Tensor, indices: Tensor, rows: Tensor, result: Tensor) -> None:
        super().__init__(x.storage.tape, (x, rows))
        self.save("index", indices, self.needs(1))
        self.save("source", rows, self.needs(1))
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        indices, _ = self.saved
        if indices is None:
            return gradient, None
        tape = self.tape
        rows = tape.empty((*indices.shape, *gradient.shape[1:]), gradient.dtype, "index_select")
        tape.launch("index_select", (gradient, indices), (rows,))
        return gradient, rows
