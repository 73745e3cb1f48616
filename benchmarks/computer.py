"""Noise of the computer that runs the simulator: other figures depend on it.

A virtual machine's processor is often one thread of a core. With load on the SMT sibling everything takes 1.5 to 2
times as long (permanent load is not visible here). If the hypervisor is short of memory, accesses to pages are slow.
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
SAMPLED_S = 0.6


def measure(_folder: Path, quick: bool) -> list[Measurement]:
    """Measure the spread of a loop's times, and accesses to pages of 4 KB after a second."""
    return [_core(), _pages(1024 if quick else 6144)]


def _core() -> Measurement:
    """Measure the 90th percentile of a Python loop's times over the 10th."""
    figures = []
    for _ in range(REPEATS):
        times = []
        end = time.perf_counter() + SAMPLED_S
        while time.perf_counter() < end:
            begun, x = time.perf_counter(), 1
            for _ in range(LOOP_STEPS):
                x = (x * 1103515245 + 12345) & 0x7FFFFFFF
            times.append(time.perf_counter() - begun)
        fast, slow = np.quantile(times, [0.1, 0.9])
        figures.append(slow / fast)
    return Measurement.of_repetitions(
        "computer, a loop's slow times by its fast ones",
        "",
        figures,
        smaller_is_better=True,
        comparison="under 1.1 where nothing disturbs; from 1.3 on the core is shared at times: replay is slow then",
    )


def _pages(pages: int) -> Measurement:
    """Measure reads of one byte of each 4 KB page, in random order."""
    with mmap.mmap(-1, pages * PAGE_BYTES) as memory:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        offsets = np.random.default_rng(0).permutation(pages) * PAGE_BYTES
        figures = []
        content = np.frombuffer(memory, np.uint8)
        content.fill(1)
        for _ in range(REPEATS):
            time.sleep(PAUSE_S)
            begun = time.perf_counter()
            content[offsets].sum()
            figures.append((time.perf_counter() - begun) / pages * 1e6)
        del content
    return Measurement.of_repetitions(
        "computer, access to a page of 4 KB after a second",
        "us",
        figures,
        smaller_is_better=True,
        comparison="under 1 where nothing disturbs; replay is slow where it is above 5",
    )
