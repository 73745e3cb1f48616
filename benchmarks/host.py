"""How quiet the machine is: other figures depend on it (docs/performance.md).

A virtual machine's processor is often half of a core; while another machine has the other half, everything takes half
as long again or twice as long (one that always has it does not show here). And where its host is short of memory, pages
are slow to touch.
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
LOOP_STEPS = 2000  # some 0.1 ms
LISTENING_S = 0.6


def measure(_folder: Path, quick: bool) -> list[Measurement]:
    """What a loop takes at times, and pages of 4 KB that nothing has touched for a second."""
    return [_core(), _pages(1024 if quick else 6144)]


def _core() -> Measurement:
    """The slowest tenth of a Python loop's runs beside the fastest."""
    figures = []
    for _ in range(REPEATS):
        times = []
        end = time.perf_counter() + LISTENING_S
        while time.perf_counter() < end:
            begun, x = time.perf_counter(), 1
            for _ in range(LOOP_STEPS):
                x = (x * 1103515245 + 12345) & 0x7FFFFFFF
            times.append(time.perf_counter() - begun)
        fast, slow = np.quantile(times, [0.1, 0.9])
        figures.append(slow / fast)
    return Measurement.of(
        "host, a loop's slow times by its fast ones",
        "",
        figures,
        smaller_is_better=True,
        beside="under 1.1 where nothing disturbs; from 1.3 on the core is shared at times: replay is slow then",
    )


def _pages(pages: int) -> Measurement:
    """One byte each of pages of 4 KB, in an order that no host foresees."""
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
    return Measurement.of(
        "host, touching a page of 4 KB after a second",
        "us",
        figures,
        smaller_is_better=True,
        beside="under 1 where nothing disturbs; replay is slow where it is above 5",
    )
