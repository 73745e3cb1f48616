"""Page sampling: one page of each stratum of an allocation, the same ones in every snapshot; and how many."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Numbers of the sampled pages, ascending, as ``send_contents`` of memory/preload/snapshot.c samples them.

    Parameters
    ----------
    allocation_bytes : bytes of the allocation
    sample_bytes : bytes to sample, approximately
    seed : selects the page of each stratum
    """
    pages = -(-allocation_bytes // PAGE_BYTES)
    n_samples = max(sample_bytes // PAGE_BYTES, 1)
    stratum = -(-pages // n_samples)
    sampled = [first + _mix((seed + first) & _MASK) % min(stratum, pages - first) for first in range(0, pages, stratum)]
    return np.array(sampled, np.uint32)


def contents_budgets(sizes: Sequence[int], budget: int) -> list[int]:
    """Bytes of each allocation's contents to store, within a budget for all of them.

    Small allocations are stored completely, the others up to the same number of pages. That number is a power of two,
    so that it rarely changes between snapshots. If there are more allocations than pages, evenly spaced ones get a
    page.

    Parameters
    ----------
    sizes : bytes of the allocations
    budget : bytes for all of them
    """
    pages = [-(-size // PAGE_BYTES) for size in sizes]
    budget_pages = budget // PAGE_BYTES
    if sum(pages) <= budget_pages:
        return list(sizes)
    if len(pages) > budget_pages:
        sampled = [
            (number + 1) * budget_pages // len(pages) > number * budget_pages // len(pages)
            for number in range(len(pages))
        ]
        return [min(size, PAGE_BYTES) if is_sampled else 0 for size, is_sampled in zip(sizes, sampled, strict=True)]
    max_pages = 1
    while sum(min(2 * max_pages, number) for number in pages) <= budget_pages:
        max_pages *= 2
    return [min(size, max_pages * PAGE_BYTES) for size in sizes]


def resample_pages(
    pages: npt.NDArray[np.uint32] | None, data: npt.NDArray[np.uint8], keep: int, seed: int
) -> tuple[npt.NDArray[np.uint32] | None, npt.NDArray[np.uint8]]:
    """About `keep` bytes of earlier samples, in full pages.

    Parameters
    ----------
    pages : numbers of the pages in `data`; None if `data` is a complete allocation
    data : their bytes, one after the other
    keep : bytes to keep, approximately; 0: none
    seed : selects the pages
    """
    if len(data) <= keep:
        return pages, data
    if not keep:
        return np.empty(0, np.uint32), np.empty(0, np.uint8)
    sampled = sampled_pages(len(data), keep, seed)
    parts = [data[start : start + PAGE_BYTES] for start in sampled.astype(np.int64) * PAGE_BYTES]
    return sampled if pages is None else pages[sampled], np.concatenate(parts)
