"""Kernels over rows: softmax with its loss, look-ups in a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from buddysim.capture.torch.access.launch import (
    LANES,
    OFF,
    Access,
    Addresses,
    ModelledKernel,
    add_atomically,
    load,
    store,
    threads,
)
from buddysim.capture.torch.access.tensors import TensorView

_IN_REGISTERS: Final = 1024  # elements of a row that a warp keeps: PyTorch's persistent softmax
_WARPS: Final = 4
_LONG_WARPS: Final = 16


def row_passes(name: str, inputs: Sequence[TensorView], outputs: Sequence[TensorView], passes: int) -> ModelledKernel:
    """Return the kernel of a softmax or of its gradient, with rows along the last axis.

    A warp reads a row of up to 1024 elements once (``softmax_warp_forward``). A thread block reads a longer row
    `passes` times (``cunn_SoftMaxForward``: the maximum, the sum, the result).
    """
    columns = outputs[0].shape[-1]
    rows = outputs[0].elements // columns
    short = columns <= _IN_REGISTERS
    warps = _WARPS if short else _LONG_WARPS
    across = LANES if short else LANES * warps
    iterations = -(-columns // across)

    def program(blocks: Addresses) -> Iterator[Access]:
        thread = threads(warps)
        row = blocks * warps + thread // LANES if short else blocks
        for last in [True] if short else [pass_index == passes - 1 for pass_index in range(passes)]:
            for first in range(0, columns, across):
                column = first + thread % across
                inside = (column < columns) & (row < rows)
                number = np.where(inside, row * columns + column, 0)
                for view in inputs:
                    yield load(np.where(inside, view.flat_address(number), OFF), view.element_bytes)
                if last:
                    for view in outputs:
                        yield store(np.where(inside, view.flat_address(number), OFF), view.element_bytes)

    steps = iterations * (len(inputs) * (1 if short else passes) + len(outputs))
    return ModelledKernel(name, -(-rows // warps) if short else rows, warps, steps, program)


def gather_rows(name: str, table: TensorView, indices: TensorView, which: Addresses, out: TensorView) -> ModelledKernel:
    """Return the kernel of ``out[i] = table[which[i]]``: a thread for each element (``indexSelectLargeIndex``).

    Parameters
    ----------
    which : int64, the values of `indices`
    """
    return _copy_rows(name, indices, which, table, out, add=False)


def scatter_add_rows(
    name: str, rows: TensorView, indices: TensorView, which: Addresses, table: TensorView
) -> ModelledKernel:
    """Return the kernel of ``table[which[i]] += rows[i]``, the gradient of a look-up, with atomics."""
    return _copy_rows(name, indices, which, table, rows, add=True)


def _copy_rows(
    name: str, indices: TensorView, which: Addresses, table: TensorView, rows: TensorView, *, add: bool
) -> ModelledKernel:
    columns = table.shape[-1]
    elements = len(which) * columns

    def program(blocks: Addresses) -> Iterator[Access]:
        number = blocks * LANES * _WARPS + threads(_WARPS)
        inside = number < elements
        number = np.where(inside, number, 0)
        row, column = np.divmod(number, columns)
        yield load(np.where(inside, indices.flat_address(row), OFF), indices.element_bytes)
        of_table = np.where(inside, table.element_address(which[row], column), OFF)
        of_rows = np.where(inside, rows.flat_address(number), OFF)
        yield load(of_rows if add else of_table)
        yield add_atomically(of_table) if add else store(of_rows)

    return ModelledKernel(name, -(-elements // (LANES * _WARPS)), _WARPS, 3, program)
