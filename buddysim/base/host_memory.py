"""Free memory of this machine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def memory_available() -> int:
    """Bytes that new processes of this machine can take without swapping, within the limit of its control group."""
    available = []
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                available.append(int(line.split()[1]) * 1024)
    for most, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        with contextlib.suppress(OSError, ValueError):
            limit = int((_CGROUP / most).read_text(encoding="ascii"))
            available.append(max(limit - int((_CGROUP / used).read_text(encoding="ascii")), 0))
    return min(available, default=os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
