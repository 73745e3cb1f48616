"""Memory that is taken where it is touched."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

_MOST_IN_HUGE_PAGES = 1 << 28


def lazy_zeros(count: int) -> NDArray[np.uint8]:
    """Zeros that take memory where they are touched."""
    if count <= _MOST_IN_HUGE_PAGES:
        return np.zeros(count, dtype=np.uint8)
    memory = mmap.mmap(-1, count)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)  # else a touched byte takes 2 MiB
    return np.frombuffer(memory, dtype=np.uint8)
