"""Update of all parameters in one kernel (``multi_tensor_apply_kernel``), in chunks of 65536 elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from buddysim.capture.torch.access.launch import LANES, Access, Addresses, ModelledKernel, load, runs, store, threads
from buddysim.capture.torch.access.tensors import TensorView

_CHUNK: Final = 65536
_WARPS: Final = 16
_VECTOR: Final = 4
_GAP: Final = 2


def update_parameters(name: str, groups: Sequence[tuple[Sequence[TensorView], Sequence[TensorView]]]) -> ModelledKernel:
    """Return a kernel with a thread block for each chunk of each parameter.

    Parameters
    ----------
    name : of the kernel
    groups : read and written tensors of each parameter: contiguous, of one size, equally many for each parameter
    """
    first_chunks = np.cumsum([0, *(-(-read[0].elements // _CHUNK) for read, _ in groups)])
    max_elements = max(max(len(read) + len(written) for read, written in groups), 1)
    sizes = np.array([read[0].elements for read, _ in groups], np.int64)
    bases = [np.array([[view.address for view in each[side]] for each in groups]).T for side in range(2)]
    iterations = _CHUNK // (LANES * _WARPS * _VECTOR)

    def program(blocks: Addresses) -> Iterator[Access]:
        group = np.searchsorted(first_chunks, blocks, side="right") - 1
        start = (blocks - first_chunks[group]) * _CHUNK
        for iteration in range(iterations):
            number = start + (iteration * LANES * _WARPS + threads(_WARPS)) * _VECTOR
            if not (number < sizes[group]).any():
                return
            for base in bases[0]:
                yield from runs(load, base[group], 4, number, sizes[group], _VECTOR, _GAP)
            for base in bases[1]:
                yield from runs(store, base[group], 4, number, sizes[group], _VECTOR, _GAP)

    return ModelledKernel(name, int(first_chunks[-1]), _WARPS, iterations * max_elements, program)
