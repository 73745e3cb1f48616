"""Tensors without data: shape, layout, type, storage, and their origin in autograd's graph.

A tensor lives as long as Python refers to it; when the last one of a storage is gone, the tape notes a free. So a local
variable of a model's code holds memory exactly as it does in PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import EllipsisType
from typing import TYPE_CHECKING, TypeAlias
from weakref import ref

from buddysim.training.autograd.dtypes import DType, float32
from buddysim.training.autograd.layout import Shape, is_contiguous

if TYPE_CHECKING:
    from buddysim.training.autograd.node import Edge, Node
    from buddysim.training.autograd.records import StorageRecord
    from buddysim.training.autograd.tape import Tape

Number: TypeAlias = int | float | bool
Index: TypeAlias = "int | slice | EllipsisType | Tensor | None"


class Storage:
    """Memory that one or more tensors refer to; its end is an event of the tape."""

    __slots__ = ("record", "tape")

    def __init__(self, tape: Tape, record: StorageRecord) -> None:
        self.tape, self.record = tape, record

    def __del__(self) -> None:
        self.tape.freed(self.record)


class Tensor:
    """A tensor of PyTorch's, without its elements.

    Attributes
    ----------
    node : that returned it; None for leaves and where no gradient is needed
    output : which of the node's outputs it is
    grad : of leaves
    producer : operator that returned it, by PyTorch's name
    """

    __slots__ = (
        "_accumulator",
        "dtype",
        "grad",
        "is_view",
        "node",
        "offset",
        "output",
        "producer",
        "requires_grad",
        "shape",
        "storage",
        "strides",
    )

    def __init__(
        self, shape: Shape, strides: Shape, offset: int, dtype: DType, storage: Storage, producer: str
    ) -> None:
        self.shape, self.strides, self.offset, self.dtype = shape, strides, offset, dtype
        self.storage, self.producer = storage, producer
        self.requires_grad = self.is_view = False
        self.node: Node | None = None
        self.output = 0
        self.grad: Tensor | None = None
        self._accumulator: ref[Node] | None = None

    @property
    def tape(self) -> Tape:
        return self.storage.tape

    @property
    def records(self) -> bool:
        """Whether autograd records what reads it."""
        return self.requires_grad and self.storage.tape.grad_enabled

    def edge(self) -> Edge:
        """Where its gradient goes."""
        if self.node is not None:
            return self.node, self.output
        node = self._accumulator() if self._accumulator is not None else None
        if node is None:
            node = accumulate.AccumulateGrad(self)
            self._accumulator = ref(node)
        return node, 0

    def detached(self) -> Tensor:
        """Another tensor on the same storage, without an origin in the graph."""
        return Tensor(self.shape, self.strides, self.offset, self.dtype, self.storage, self.producer)

    detach = detached

    def size(self, dimension: int) -> int:
        return self.shape[dimension]

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return prod(self.shape)

    def is_contiguous(self) -> bool:
        return is_contiguous(self.shape, self.strides)

    def backward(self) -> None:
        """Compute the gradients of the leaves that this scalar depends on."""
        engine.backward(self)

    # Views and copies.

    def view(self, *shape: int) -> Tensor:
        return views.view(self, shape)

    def reshape(self, *shape: int) -> Tensor:
        return views.reshape(self, shape)

    def flatten(self, first: int = 0, last: int = -1) -> Tensor:
        """Dimensions `first` to `last` as one."""
        last %= len(self.shape)
        first %= len(self.shape)
        if first == last:
            return self
        return views.reshape(self, (*self.shape[:first], prod(self.shape[first : last + 1]), *self.shape[last + 1 :]))

    def transpose(self, first: int, second: int) -> Tensor:
        return views.transpose(self, first, second)

    def permute(self, *order: int) -> Tensor:
        return views.permute(self, order)

    def t(self) -> Tensor:
        return views.t(self)

    def expand(self, *shape: int) -> Tensor:
        return views.expand(self, shape)

    def unsqueeze(self, dimension: int) -> Tensor:
        return views.unsqueeze(self, dimension)

    def squeeze(self, dimension: int) -> Tensor:
        return views.squeeze(self, dimension)

    def split(self, size: int | Sequence[int], dimension: int = 0) -> list[Tensor]:
        return views.split(self, size, dimension)

    def chunk(self, count: int, dimension: int = 0) -> list[Tensor]:
        return views.chunk(self, count, dimension)

    def unbind(self, dimension: int = 0) -> list[Tensor]:
        return views.unbind(self, dimension)

    def contiguous(self) -> Tensor:
        return copies.contiguous(self)

    def clone(self) -> Tensor:
        return copies.clone(self)

    def to(self, dtype: DType) -> Tensor:
        return copies.to(self, dtype)

    def float(self) -> Tensor:
        return copies.to(self, float32)

    def repeat(self, *repeats: int) -> Tensor:
        return copies.repeat(self, repeats)

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Tensor:
        """Numbers, slices, None and ... as in PyTorch."""
        listed = index if isinstance(index, tuple) else (index,)
        if Ellipsis in listed:
            position = listed.index(Ellipsis)
            n_others = sum(one is not None for one in listed) - 1
            listed = (*listed[:position], *[slice(None)] * (len(self.shape) - n_others), *listed[position + 1 :])
        result, dimension = self, 0
        for one in listed:
            if one is None:
                result = views.unsqueeze(result, dimension)
                dimension += 1
            elif isinstance(one, int):
                result = views.select(result, dimension, one)
            elif isinstance(one, slice):
                if one != slice(None):
                    extent = result.shape[dimension]
                    start = 0 if one.start is None else one.start
                    end = extent if one.stop is None else one.stop
                    result = views.slice_(result, dimension, start, end, one.step or 1)
                dimension += 1
            else:
                raise NotImplementedError("an index of another kind")
        return result

    # Arithmetic.

    def __add__(self, other: Tensor | Number) -> Tensor:
        return pointwise.add(self, other)

    def __radd__(self, other: Number) -> Tensor:
        return pointwise.add(self, other)

    def __sub__(self, other: Tensor | Number) -> Tensor:
        return pointwise.sub(self, other)

    def __rsub__(self, other: Number) -> Tensor:
        return pointwise.sub(other, self)

    def __mul__(self, other: Tensor | Number) -> Tensor:
        return pointwise.mul(self, other)

    def __rmul__(self, other: Number) -> Tensor:
        return pointwise.mul(self, other)

    def __truediv__(self, other: Tensor | Number) -> Tensor:
        return pointwise.div(self, other)

    def __neg__(self) -> Tensor:
        return pointwise.neg(self)

    def __pow__(self, exponent: Number) -> Tensor:
        return pointwise.pow_(self, exponent)

    def __matmul__(self, other: Tensor) -> Tensor:
        return products.matmul(self, other)

    def __gt__(self, other: Tensor | Number) -> Tensor:
        return pointwise.compare("gt", self, other)

    def __lt__(self, other: Tensor | Number) -> Tensor:
        return pointwise.compare("lt", self, other)

    def __ge__(self, other: Tensor | Number) -> Tensor:
        return pointwise.compare("ge", self, other)

    def __le__(self, other: Tensor | Number) -> Tensor:
        return pointwise.compare("le", self, other)

    def pow(self, exponent: Number) -> Tensor:
        return pointwise.pow_(self, exponent)

    def sum(self, dimensions: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        return reductions.sum_(self, dimensions, keepdim)

    def mean(self, dimensions: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        return reductions.mean(self, dimensions, keepdim)

    def masked_fill(self, mask: Tensor, value: Number) -> Tensor:
        return indexing.masked_fill(self, mask, value)


from buddysim.training.autograd import accumulate, engine  # noqa: E402
from buddysim.training.autograd.operators import copies, indexing, pointwise, products, reductions, views  # noqa: E402
