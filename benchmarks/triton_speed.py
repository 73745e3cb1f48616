"""Lane accesses that `capture triton` takes a second, by elements of a block: ``python -m benchmarks.triton_speed``.

The capture and the interpreter alone are timed with the same launches, best of three runs each: what is left between
them is the capture's own. Seconds are of the processor.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import triton
import triton.language as tl

from buddysim.base.output import Output
from buddysim.capture.launch_window import LaunchWindow
from buddysim.capture.triton_kernels import captured
from buddysim.capture.triton_kernels.session import TritonCaptureSettings

BLOCKS = (256, 1024, 8192, 32768)
_ELEMENTS = 1 << 22
_MIN_PROGRAMS, _MAX_PROGRAMS = 128, 512
_RUNS = 3


@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(o + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


def lane_accesses_per_s(block: int, recorded: bool, folder: Path) -> float:
    """Return the lane accesses a second of launches, without snapshots: the best run.

    Parameters
    ----------
    block : elements of a program
    recorded : whether accesses are captured; else they are interpreted alone
    """
    programs = min(_MAX_PROGRAMS, max(_MIN_PROGRAMS, _ELEMENTS // block))
    n = programs * block
    x, y, o = (torch.ones(n) for _ in range(3))
    window = None if recorded else LaunchWindow.parse("0:1")  # the first launch compiles

    def launch() -> None:
        add[(programs,)](x, y, o, n, BLOCK=block)

    settings = TritonCaptureSettings(snapshots=0, window=window)
    with captured(Output(folder / f"{block}-{recorded}.bin", keep_part=True), settings, "add", "benchmark"):
        launch()
        return 3 * n / min(_seconds(launch) for _ in range(_RUNS))


def _seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    print("elements  captured, M/s  interpreted alone, M/s")
    with tempfile.TemporaryDirectory() as folder:
        for block in BLOCKS:
            rates = [lane_accesses_per_s(block, recorded, Path(folder)) / 1e6 for recorded in (True, False)]
            print(f"{block:8} {rates[0]:14.1f} {rates[1]:23.1f}", flush=True)


if __name__ == "__main__":
    main()
