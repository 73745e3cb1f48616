"""Memory instructions and line accesses per second of one core: scheme `buddy`, banked DRAM, all warps resident."""

from __future__ import annotations

from pathlib import Path

import buddysim
from benchmarks.measurement import Measurement, repeated, timed
from buddysim.buddy import profile
from buddysim.synthetic import make_trace

MILLION = 10**6
COMPARISON_STREAM = "C sketch of an event loop 6.3; Accel-Sim 0.002-0.008 (all warp instructions)"
COMPARISON_RANDOM = (
    "C sketch of an event loop 13; bare C loop of L2, metadata and channels 60-80 (random), 100-180 (streaming)"
)


def settings(quick: bool) -> dict[str, dict[str, str]]:
    """Return the settings of streaming and fully divergent loads: 8 blocks of 8 warps on each of 56 SMs."""
    megabytes = 64 if quick else 512
    return {
        "stream": {"footprint": f"{megabytes} MiB", "lines_per_warp": "64"},
        "random": {
            "footprint": f"{megabytes} MiB",
            "operations": str(28672 if quick else 28672 * 6),
            "operations_per_warp": "8",
        },
    }


def measure(folder: Path, quick: bool) -> list[Measurement]:
    """Measure streaming and divergent loads on the paper's machine, which has 56 SMs."""
    return [
        _rate(folder, "stream", "memory_instructions", 5.0, COMPARISON_STREAM, quick),
        _rate(folder, "random", "line_accesses", 10.0, COMPARISON_RANDOM, quick),
    ]


def _rate(folder: Path, workload: str, counted: str, required: float, comparison: str, quick: bool) -> Measurement:
    path = folder / f"{workload}.bin"
    make_trace(workload, path, settings(quick)[workload])
    with buddysim.open_trace(path) as trace:
        targets = profile(trace).targets

        def rate() -> float:
            result, time = timed(lambda: buddysim.simulate(trace, scheme="buddy", targets=targets))
            return result.speed[f"{counted}_per_s"] * time.wall_s / time.core_s / MILLION

        figures = repeated(rate, quick)
    what = counted.replace("_", " ")
    return Measurement.of_repetitions(
        f"replay, {workload}", f"M {what}/s per core", figures, required=required, comparison=comparison
    )
