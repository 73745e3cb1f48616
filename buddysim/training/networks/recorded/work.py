"""Work of a recorded operation: what its time follows from."""

from __future__ import annotations

from typing import NamedTuple

from buddysim.training.autograd.records import TracedOperation


class OperationWork(NamedTuple):
    """Bytes, matrix products and FLOPs of one operation.

    Attributes
    ----------
    bytes : read and written, at least
    products : m, n, k and count of each size of product
    flops : those of the products among them
    operand_bytes : of an element of the operands
    """

    bytes: int
    products: tuple[tuple[int, int, int, int], ...]
    flops: int
    operand_bytes: int


def work_of(operation: TracedOperation) -> OperationWork:
    """Return the work of an operation."""
    products = tuple((one.m, one.n, one.k, one[3]) for one in operation.products)
    operands = operation.reads or operation.writes
    width = operands[0].dtype.size if operands else 4
    return OperationWork(operation.bytes_read + operation.bytes_written, products, operation.flops, width)
