"""Products of groups of rows, each with a matrix of its own (``torch.nn.functional.grouped_mm``)."""

from __future__ import annotations

from collections.abc import Sequence

from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import views
from buddysim.training.autograd.records import Product
from buddysim.training.autograd.tensor import Tensor

_KERNEL = "_grouped_mm"


class GroupedMmBackward0(GraphNode):
    """Saves rows and matrices; each gradient is a grouped product as well."""

    __slots__ = ("is_transposed", "rows")
    name = "GroupedMmBackward0"

    def __init__(self, x: Tensor, matrices: Tensor, ends: Tensor, rows: Sequence[int], result: Tensor) -> None:
        super().__init__(x.storage.tape, (x, matrices))
        self.rows, self.is_transposed = tuple(rows), matrices.strides[-1] != 1
        self.save("self", x, self.needs(1))
        self.save("mat2", matrices, self.needs(0))
        self.save("offs", ends)
        self.returns(result)

    def backward(self, gradient: Tensor) -> Gradients:
        x, matrices, ends = self.saved
        second = self._of_matrices(gradient, x, ends) if x is not None else None
        first = None
        if matrices is not None:
            first = _launch(gradient, views.transpose(matrices, -2, -1), ends, self.rows)
        return first, second

    def _of_matrices(self, gradient: Tensor, x: Tensor, ends: Tensor) -> Tensor:
        """Of the matrices, in their layout."""
        left, right = (gradient, x) if self.is_transposed else (x, gradient)
        left = views.transpose(left, -2, -1)
        (m, _), n = left.shape, right.shape[1]
        result = self.tape.empty((len(self.rows), m, n), x.dtype, _KERNEL)
        products = tuple(Product(m, n, rows, 1) for rows in self.rows if rows)
        self.tape.launch(_KERNEL, (left, right, ends), (result,), _merged(products))
        return views.transpose(result, -2, -1) if self.is_transposed else result


def _merged(products: Sequence[Product]) -> tuple[Product, ...]:
    """Products of one size as one entry."""
    counts: dict[Product, int] = {}
    for one in products:
        counts[one] = counts.get(one, 0) + 1
    return tuple(Product(one.m, one.n, one.k, count) for one, count in counts.items())


def _launch(x: Tensor, matrices: Tensor, ends: Tensor, rows: Sequence[int]) -> Tensor:
    tape = x.storage.tape
    k, n = matrices.shape[1:]
    result = tape.empty((x.shape[0], n), x.dtype, _KERNEL)
    products = tuple(Product(count, n, k, 1) for count in rows if count)
    tape.launch(_KERNEL, (x, matrices, ends), (result,), _merged(products))
    return result


def grouped_mm(x: Tensor, matrices: Tensor, ends: Tensor, rows: Sequence[int]) -> Tensor:
    """Rows of each group times its matrix.

    Parameters
    ----------
    x : rows, sorted by group
    matrices : of shape (groups, k, n), whose rows or columns lie one after the other in memory
    ends : where each group ends, on the GPU
    rows : of each group; no memory depends on them, the sizes of the products do
    """
    result = _launch(x, matrices, ends, rows)
    if x.records or matrices.records:
        GroupedMmBackward0(x, matrices, ends, rows, result)
    return result
