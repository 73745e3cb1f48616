"""Which pages of an allocation are sampled: one of each stratum, the same ones in every snapshot."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from buddysim.trace.format import PAGE_BYTES

_MASK: Final = (1 << 64) - 1


def _mix(value: int) -> int:
    """splitmix64 (Steele, Lea and Flood, OOPSLA 2014, figure 16)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def sampled_pages(allocation_bytes: int, sample_bytes: int, seed: int) -> npt.NDArray[np.uint32]:
    """Numbers of the sampled pages, ascending; ``send_contents`` of memory/preload/snapshot.c is its twin.

    Parameters
    ----------
    allocation_bytes : bytes of the allocation
    sample_bytes : about this much of it is wanted
    seed : chooses the page of each stratum
    """
    pages = -(-allocation_bytes // PAGE_BYTES)
    wanted = max(sample_bytes // PAGE_BYTES, 1)
    stratum = -(-pages // wanted)
    chosen = [first + _mix((seed + first) & _MASK) % min(stratum, pages - first) for first in range(0, pages, stratum)]
    return np.array(chosen, np.uint32)
