"""Arrays of zeros whose memory is allocated at the first access to a page."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

_MAX_HUGE_PAGE_BYTES = 1 << 28


def lazy_zeros(count: int) -> NDArray[np.uint8]:
    """Return zeros whose memory is allocated page by page, at the first access."""
    if count <= _MAX_HUGE_PAGE_BYTES:
        return np.zeros(count, dtype=np.uint8)
    memory = mmap.mmap(-1, count)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)  # a huge page would take 2 MiB for one accessed byte
    return np.frombuffer(memory, dtype=np.uint8)
