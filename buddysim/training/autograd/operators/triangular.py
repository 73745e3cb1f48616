"""Systems of linear equations whose matrix is a lower triangle with ones on its diagonal."""

from __future__ import annotations

from buddysim.training.autograd.layout import contiguous_strides
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import functions, products, views
from buddysim.training.autograd.operators.pointwise import pointwise
from buddysim.training.autograd.records import Product
from buddysim.training.autograd.tensor import Tensor

_KERNEL = "linalg_solve_triangular"


class LinalgSolveTriangularBackward0(GraphNode):
    """Solves the transposed system for the gradient; that of the matrix is a product with the result."""

    __slots__ = ()
    name = "LinalgSolveTriangularBackward0"

    def __init__(self, matrix: Tensor, right: Tensor, result: Tensor) -> None:
        super().__init__(matrix.storage.tape, (matrix, right))
        self.save("self", matrix)
        self.returns(result)
        self.save_output("result", result)

    def backward(self, gradient: Tensor) -> Gradients:
        matrix, result = self.saved
        of_right = _solved(views.transpose(matrix, -2, -1), gradient)
        if not self.needs(0):
            return None, of_right
        negated = functions.neg(products.matmul(of_right, views.transpose(result, -2, -1)))
        return pointwise("tril", negated), of_right


def solve_triangular(matrix: Tensor, right: Tensor) -> Tensor:
    """The solution for each column of `right`, which is read as transposed."""
    result = _solved(matrix, right)
    if matrix.records or right.records:
        LinalgSolveTriangularBackward0(matrix, right, result)
    return result


def _solved(matrix: Tensor, right: Tensor) -> Tensor:
    tape, (*batch, rows, columns) = matrix.storage.tape, right.shape
    turned = contiguous_strides((*batch, columns, rows))
    result = tape.empty(right.shape, right.dtype, _KERNEL, (*turned[:-2], turned[-1], turned[-2]))
    count = right.numel() // (rows * columns)
    tape.launch(_KERNEL, (matrix, right), (result,), (Product(rows, columns, rows, count),))
    return result
