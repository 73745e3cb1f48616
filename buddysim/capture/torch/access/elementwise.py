"""Elementwise kernels of PyTorch's TensorIterator.

A thread block of 128 threads computes 512 elements. If all tensors are contiguous, a thread takes 4 adjacent elements
(``vectorized_elementwise_kernel``), otherwise 4 that are 128 apart (``unrolled_elementwise_kernel``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from buddysim.capture.torch.access.launch import (
    LANES,
    OFF,
    Access,
    Addresses,
    ModelledKernel,
    Moves,
    load,
    runs,
    store,
    threads,
)
from buddysim.capture.torch.access.tensors import TensorView

_WARPS: Final = 4
_EACH: Final = 4  # elements of a thread
_BLOCK: Final = LANES * _WARPS * _EACH


def elementwise(
    name: str, inputs: Sequence[TensorView], outputs: Sequence[TensorView], gap_instructions: int = 2
) -> ModelledKernel:
    """Return a kernel over the elements of its outputs, which have one shape.

    Parameters
    ----------
    name : of the kernel
    inputs : tensors that broadcast to the outputs' shape
    outputs : tensors that it writes
    gap_instructions : other instructions before each access
    """
    shape = max((view.shape for view in outputs), key=len)
    elements = outputs[0].elements
    same = all(
        view.dense and view.shape == shape and view.strides == outputs[0].strides for view in (*inputs, *outputs)
    )
    if same:
        inputs = [TensorView(view.address, (elements,), (1,), view.dtype) for view in inputs]
        outputs = [TensorView(view.address, (elements,), (1,), view.dtype) for view in outputs]
    else:
        inputs = [view.broadcast_to(shape) for view in inputs]
    vector = same and all(view.is_aligned(_EACH * view.element_bytes) for view in (*inputs, *outputs))

    def program(blocks: Addresses) -> Iterator[Access]:
        for view in inputs:
            yield from _moves(view, load, blocks, elements, vector, gap_instructions)
        for view in outputs:
            yield from _moves(view, store, blocks, elements, vector, gap_instructions)

    steps = (len(inputs) + len(outputs)) * _EACH
    kind = "vectorized" if vector else "unrolled"
    return ModelledKernel(f"{kind}_elementwise {name}", -(-elements // _BLOCK), _WARPS, steps, program)


def _moves(
    view: TensorView, access: Moves, blocks: Addresses, elements: int, vector: bool, gap_instructions: int
) -> Iterator[Access]:
    """Yield the accesses of a thread block to its part of a tensor."""
    thread = threads(_WARPS)
    if vector:
        first = blocks * _BLOCK + thread * _EACH
        yield from runs(access, view.address, view.element_bytes, first, elements, _EACH, gap_instructions)
        return
    for iteration in range(_EACH):
        number = blocks * _BLOCK + iteration * LANES * _WARPS + thread
        is_inside = number < elements
        yield access(
            np.where(is_inside, view.flat_address(np.where(is_inside, number, 0)), OFF),
            view.element_bytes,
            gap_instructions,
        )


def concatenate(name: str, inputs: Sequence[TensorView], out: TensorView, axis: int) -> ModelledKernel:
    """Return the kernel that concatenates contiguous tensors along an axis (``CatArrayBatchedCopy``)."""
    inner = [math.prod(view.shape[axis:]) for view in inputs]
    ends = np.cumsum(inner)
    bases, sizes = np.array([view.address for view in inputs]), np.array(inner)

    def program(blocks: Addresses) -> Iterator[Access]:
        for iteration in range(_EACH):
            number = blocks * _BLOCK + iteration * LANES * _WARPS + threads(_WARPS)
            is_inside = number < out.elements
            outer, at = np.divmod(np.where(is_inside, number, 0), ends[-1])
            part = np.searchsorted(ends, at, side="right")
            source = outer * sizes[part] + at - (ends[part] - sizes[part])
            yield load(np.where(is_inside, bases[part] + source * out.element_bytes, OFF), out.element_bytes)
            yield store(np.where(is_inside, out.address + number * out.element_bytes, OFF), out.element_bytes)

    return ModelledKernel(name, -(-out.elements // _BLOCK), _WARPS, 2 * _EACH, program)
