"""Kernels of NCCL, and the collective that each of them is."""

from __future__ import annotations

import re

_KERNEL = re.compile(r"\bnccl(?:Dev)?Kernel_(AllGather|ReduceScatter|AllReduce|Reduce|Broadcast)_")
_NAMES = {
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "AllReduce": "all_reduce",
    "Reduce": "reduce",
    "Broadcast": "broadcast",
}


def collective_of(kernel: str) -> str | None:
    """Return the collective that a kernel does, ``"all_gather"``; None for other kernels.

    Examples
    --------
    >>> collective_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    'all_reduce'
    """
    match = _KERNEL.search(kernel)
    return None if match is None else _NAMES[match[1]]
