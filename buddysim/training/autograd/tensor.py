"""Tensors without data: shape, layout, type, storage, and their origin in autograd's graph.

A tensor lives as long as Python refers to it; when the last one of a storage is gone, the tape notes a free. So a local
variable of a model's code holds memory exactly as it does in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from types import EllipsisType
from typing import TYPE_CHECKING, TypeAlias
from weakref import ref

from buddysim.training.autograd.dtypes import DType, float32
from buddysim.training.autograd.layout import Shape, is_contiguous

if TYPE_CHECKING:
    from buddysim.training.autograd.node import Edge, GraphNode
    from buddysim.training.autograd.records import StorageRecord
    from buddysim.training.autograd.tape import Tape

Number: TypeAlias = int | float | bool
Index: TypeAlias = "int | slice | EllipsisType | Tensor | None"
Dimensions: TypeAlias = int | Sequence[int] | None


class TensorStorage:
    """Memory that one or more tensors refer to; its end is an event of the tape."""

    __slots__ = ("is_released", "record", "tape")

    def __init__(self, tape: Tape, record: StorageRecord) -> None:
        self.tape, self.record, self.is_released = tape, record, False

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """Give the memory back though tensors refer to it (``untyped_storage().resize_(0)``)."""
        if not self.is_released:
            self.is_released = True
            self.tape.freed(self.record)

    def restore(self) -> None:
        """Allocate memory again; it is another record of the tape."""
        old = self.record
        self.record = self.tape.record(old.bytes, old.producer, old.kind, old.label)
        self.is_released = False


class Tensor:
    """A tensor of PyTorch's, without its elements.

    Attributes
    ----------
    offset : of its first element in the storage
    producer : operator that returned it, by PyTorch's name
    node : of the graph, that returned it; None for leaves and where no gradient is needed
    output : which of the node's outputs it is
    grad : of leaves
    base : what it is a view of, where an operator may write into it
    after_accumulate : called when a leaf has its gradient (``register_post_accumulate_grad_hook``)
    """

    __slots__ = (
        "_accumulator",
        "after_accumulate",
        "base",
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
        self, shape: Shape, strides: Shape, offset: int, dtype: DType, storage: TensorStorage, producer: str
    ) -> None:
        self.shape, self.strides, self.offset, self.dtype = shape, strides, offset, dtype
        self.storage, self.producer = storage, producer
        self.requires_grad = self.is_view = False
        self.node: GraphNode | None = None
        self.output = 0
        self.grad: Tensor | None = None
        self.base: Tensor | None = None
        self.after_accumulate: Callable[[Tensor], None] | None = None
        self._accumulator: ref[GraphNode] | None = None

    def __repr__(self) -> str:
        return f"Tensor({self.shape}, {self.dtype})"

    @property
    def tape(self) -> Tape:
        return self.storage.tape

    @property
    def records(self) -> bool:
        """Whether autograd records what reads it."""
        return self.requires_grad and self.storage.tape.grad_enabled

    @property
    def edge(self) -> Edge:
        """Where its gradient goes: to the node that returned it, of a leaf to the one that gives it the gradient."""
        if self.node is not None:
            return self.node, self.output
        node = self._accumulator() if self._accumulator is not None else None
        if node is None:
            node = accumulate.AccumulateGrad(self)
            self._accumulator = ref(node)
        return node, 0

    def detach(self) -> Tensor:
        """Another tensor on the same storage, without an origin in the graph."""
        return Tensor(self.shape, self.strides, self.offset, self.dtype, self.storage, self.producer)

    def size(self, dim: int) -> int:
        return self.shape[dim]

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return prod(self.shape)

    def is_contiguous(self) -> bool:
        return is_contiguous(self.shape, self.strides)

    def backward(self, gradient: Tensor | None = None, retain_graph: bool = False) -> None:
        """Compute the gradients of the leaves that this tensor depends on; see `engine.backward`."""
        engine.backward(self, gradient, retain_graph)

    # Views and copies.

    def view(self, *shape: int) -> Tensor:
        return views.view(self, shape)

    def reshape(self, *shape: int) -> Tensor:
        return views.reshape(self, shape)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        return views.flatten(self, start_dim, end_dim)

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        return views.transpose(self, dim0, dim1)

    def permute(self, *dims: int) -> Tensor:
        return views.permute(self, dims)

    def t(self) -> Tensor:
        return views.t(self)

    def expand(self, *shape: int) -> Tensor:
        return views.expand(self, shape)

    def unsqueeze(self, dim: int) -> Tensor:
        return views.unsqueeze(self, dim)

    def squeeze(self, dim: int) -> Tensor:
        return views.squeeze(self, dim)

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        return views.narrow(self, dim, start, length)

    def split(self, split_size: int | Sequence[int], dim: int = 0) -> list[Tensor]:
        return views.split(self, split_size, dim)

    def chunk(self, chunks: int, dim: int = 0) -> list[Tensor]:
        return views.chunk(self, chunks, dim)

    def unbind(self, dim: int = 0) -> list[Tensor]:
        return views.unbind(self, dim)

    def contiguous(self) -> Tensor:
        return copies.contiguous(self)

    def clone(self) -> Tensor:
        return copies.clone(self)

    def to(self, dtype: DType) -> Tensor:
        return copies.to(self, dtype)

    def type_as(self, other: Tensor) -> Tensor:
        return copies.to(self, other.dtype)

    def float(self) -> Tensor:
        return copies.to(self, float32)

    def repeat(self, *repeats: int) -> Tensor:
        return copies.repeat(self, repeats)

    def repeat_interleave(self, repeats: int, dim: int) -> Tensor:
        return copies.repeat_interleave(self, repeats, dim)

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Tensor:
        return subscripts.subscript(self, index)

    # Arithmetic.

    def __add__(self, other: Tensor | Number) -> Tensor:
        return arithmetic.add(self, other)

    def __radd__(self, other: Number) -> Tensor:
        return arithmetic.add(self, other)

    def __sub__(self, other: Tensor | Number) -> Tensor:
        return arithmetic.sub(self, other)

    def __rsub__(self, other: Number) -> Tensor:
        return arithmetic.sub(other, self)

    def __mul__(self, other: Tensor | Number) -> Tensor:
        return arithmetic.mul(self, other)

    def __rmul__(self, other: Number) -> Tensor:
        return arithmetic.mul(self, other)

    def __truediv__(self, other: Tensor | Number) -> Tensor:
        return arithmetic.div(self, other)

    def __rtruediv__(self, other: Number) -> Tensor:
        return arithmetic.div(other, self)

    def __neg__(self) -> Tensor:
        return functions.neg(self)

    def __pow__(self, exponent: Number) -> Tensor:
        return arithmetic.pow_(self, exponent)

    def __matmul__(self, other: Tensor) -> Tensor:
        return products.matmul(self, other)

    def __gt__(self, other: Tensor | Number) -> Tensor:
        return arithmetic.compare("gt", self, other)

    def __lt__(self, other: Tensor | Number) -> Tensor:
        return arithmetic.compare("lt", self, other)

    def __ge__(self, other: Tensor | Number) -> Tensor:
        return arithmetic.compare("ge", self, other)

    def __le__(self, other: Tensor | Number) -> Tensor:
        return arithmetic.compare("le", self, other)

    def add_(self, other: Tensor | Number) -> Tensor:
        return arithmetic.add_(self, other)

    def mul_(self, other: Tensor | Number) -> Tensor:
        return arithmetic.mul_(self, other)

    def div_(self, other: Tensor | Number) -> Tensor:
        return arithmetic.div_(self, other)

    def pow(self, exponent: Number) -> Tensor:
        return arithmetic.pow_(self, exponent)

    def rsqrt(self) -> Tensor:
        return functions.rsqrt(self)

    def cos(self) -> Tensor:
        return functions.cos(self)

    def sin(self) -> Tensor:
        return functions.sin(self)

    def exp(self) -> Tensor:
        return functions.exp(self)

    def abs(self) -> Tensor:
        return functions.abs_(self)

    def sum(self, dim: Dimensions = None, keepdim: bool = False, dtype: DType | None = None) -> Tensor:
        return reductions.sum_(self, dim, keepdim, dtype)

    def mean(self, dim: Dimensions = None, keepdim: bool = False, dtype: DType | None = None) -> Tensor:
        return reductions.mean(self, dim, keepdim, dtype)

    def masked_fill(self, mask: Tensor, value: Number) -> Tensor:
        return indexing.masked_fill(self, mask, value)


from buddysim.training.autograd import accumulate, engine  # noqa: E402
from buddysim.training.autograd.operators import (  # noqa: E402
    arithmetic,
    copies,
    functions,
    indexing,
    products,
    reductions,
    subscripts,
    views,
)
