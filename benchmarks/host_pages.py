"""How long the machine takes to touch a page that nothing has touched for a second: other figures depend on it.

Where a virtual machine's host is busy, it is what makes a replay slow (docs/performance.md).
"""

from __future__ import annotations

import mmap
import time
from pathlib import Path

import numpy as np

from benchmarks.measurement import Measurement

PAGE_BYTES = 4096
PAUSE_S = 1.0
REPEATS = 3


def measure(_folder: Path, quick: bool) -> list[Measurement]:
    """Pages of 4 KB, one byte of each, in an order that no host foresees."""
    pages = 1024 if quick else 6144
    with mmap.mmap(-1, pages * PAGE_BYTES) as memory:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        places = np.random.default_rng(0).permutation(pages) * PAGE_BYTES
        figures = []
        content = np.frombuffer(memory, np.uint8)
        content.fill(1)
        for _ in range(REPEATS):
            time.sleep(PAUSE_S)
            begun = time.perf_counter()
            content[places].sum()
            figures.append((time.perf_counter() - begun) / pages * 1e6)
        del content
    return [
        Measurement.of(
            "host, touching a page of 4 KB after a second",
            "us",
            figures,
            smaller_is_better=True,
            beside="under 1 where nothing disturbs; replay is slow where it is above 5",
        )
    ]
