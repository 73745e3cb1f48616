"""Memory: what a process may take, and whether the kernel ended one for want of it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from collections.abc import Iterator
from functools import cache
from pathlib import Path

#: Fraction of the memory that is free when a sweep starts; the rest is page cache for traces.
FRACTION = 0.85

#: glibc's numbers of `mallopt` (malloc.h), and the values that its own adaptation ends at (mallopt(3)).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_MAX_RETAINED_BYTES = 32 * 2**20


@cache
def keep_freed_memory() -> None:
    """Lets this process keep up to 64 MiB that it frees, as processes do by default, where the C library is glibc.

    Dask starts workers with ``MALLOC_TRIM_THRESHOLD_=65536``: they give all back, and every point faults its pages in
    again, which took a fifth of short points' time.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _MAX_RETAINED_BYTES)
        mallopt(_TRIM_THRESHOLD, 2 * _MAX_RETAINED_BYTES)


def killed_for_memory() -> int:
    """Return the number of processes that the kernel ended because memory ran out; 0 if unknown."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def reset_peak() -> None:
    """Starts the count of this process's peak resident memory anew, where the kernel can (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


@contextlib.contextmanager
def limited(grant_bytes: int | None) -> Iterator[None]:
    """Limit this process to that many more bytes: an allocation beyond raises MemoryError."""
    if grant_bytes is None or not hasattr(resource, "RLIMIT_DATA"):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _data_bytes() + grant_bytes
    if before[1] != resource.RLIM_INFINITY:
        limit = min(limit, before[1])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _data_bytes() -> int:
    """Private memory of this process, reserved or used: what RLIMIT_DATA counts."""
    with contextlib.suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0
