"""Detects pages that changed between two snapshots by a checksum of each page."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt

from buddysim.trace.format import PAGE_BYTES

_ZEROS = bytes(PAGE_BYTES)


@dataclass(frozen=True)
class PageSums:
    """CRC-32 of an allocation's sampled pages; `numbers` None: all pages."""

    pages: int  # of the allocation
    last_bytes: int  # of its last page
    numbers: npt.NDArray[np.uint32] | None
    sums: npt.NDArray[np.uint32]


def sum_pages(allocation_bytes: int, numbers: npt.NDArray[np.uint32] | None, data: npt.NDArray[np.uint8]) -> PageSums:
    """Return the checksums of the consecutive pages in `data`."""
    view = np.ascontiguousarray(data).data
    sums = [crc32(view[start : start + PAGE_BYTES]) for start in range(0, len(view), PAGE_BYTES)]
    pages = -(-allocation_bytes // PAGE_BYTES)
    last = allocation_bytes - (pages - 1) * PAGE_BYTES
    return PageSums(pages, last, numbers, np.array(sums, np.uint32))


def changed_pages(before: PageSums | None, now: PageSums) -> npt.NDArray[np.bool_]:
    """Return for each page whether it changed; without a `before`, whether it is nonzero.

    A page that was not sampled takes the value of the nearest sampled one.
    """
    if before is None:
        reference = np.full(len(now.sums), crc32(_ZEROS), np.uint32)
        if now.numbers is None or (len(now.numbers) and int(now.numbers[-1]) == now.pages - 1):
            reference[-1] = crc32(_ZEROS[: now.last_bytes])
    else:
        reference = before.sums
    changed: npt.NDArray[np.bool_] = now.sums != reference
    if now.numbers is None:
        return changed
    seen = now.numbers.astype(np.int64)
    middles = (seen[1:] + seen[:-1]) // 2
    nearest = np.searchsorted(middles, np.arange(now.pages), "left")
    return np.take(changed, nearest)
