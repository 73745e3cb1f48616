"""Batch normalisation in training, by cuDNN's kernels for NCHW (``bn_fw_tr_1C11``, ``bn_bw_1C11``).

One thread block reads one channel of every image. Elements that don't fit in its registers are read again."""

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
    barrier,
    load,
    runs,
    store,
    threads,
)
from buddysim.capture.torch.access.tensors import TensorView

_WARPS: Final = 16
_VECTOR: Final = 4
_CACHED_ELEMENTS: Final = 32  # elements of each input that a thread keeps
_GAP: Final = 2


def channel_passes(
    name: str,
    inputs: Sequence[TensorView],
    values: Sequence[TensorView],
    results: Sequence[TensorView],
    outputs: Sequence[TensorView],
) -> ModelledKernel:
    """Return a kernel with sums over each channel, and results that use the sums for each element.

    Parameters
    ----------
    name : of the kernel
    inputs : contiguous tensors (N, C, ...) of one shape
    values : (C,), read by each channel's thread block
    results : (C,), written by it
    outputs : of the inputs' shape; none for a sum alone
    """
    images, channels = inputs[0].shape[:2]
    pixels = inputs[0].elements // (images * channels)
    each = _VECTOR if pixels % _VECTOR == 0 and all(view.is_aligned(4 * _VECTOR) for view in (*inputs, *outputs)) else 1
    elements = images * pixels  # of a channel
    iterations = -(-elements // (LANES * _WARPS * each))

    def program(blocks: Addresses) -> Iterator[Access]:
        thread = threads(_WARPS)

        def first_of(iteration: int) -> tuple[Addresses, Addresses]:
            at = (iteration * LANES * _WARPS + thread) * each
            image, pixel = np.divmod(np.minimum(at, elements - each), pixels)
            return (image * channels + blocks) * pixels + pixel, np.where(at < elements, inputs[0].elements, 0)

        def accesses(views: Sequence[TensorView], iteration: int, *, write: bool) -> Iterator[Access]:
            first, end = first_of(iteration)
            for view in views:
                for access in runs(store if write else load, view.address, 4, first, end, each, _GAP):
                    if access.bytes_per_lane == 4 * each:
                        yield access

        for view in values:
            yield load(np.broadcast_to(view.flat_address(blocks), (len(blocks), _WARPS, LANES)))
        for iteration in range(iterations):
            yield from accesses(inputs, iteration, write=False)
        yield barrier()
        for view in results:
            yield store(np.where(thread == 0, view.flat_address(blocks), OFF))
        if not outputs:
            return
        for iteration in range(iterations):
            if iteration >= _CACHED_ELEMENTS // each:
                yield from accesses(inputs, iteration, write=False)
            yield from accesses(outputs, iteration, write=True)

    steps = iterations * (2 * len(inputs) + len(outputs)) + len(values) + len(results) + 1
    return ModelledKernel(name, channels, _WARPS, steps, program)
