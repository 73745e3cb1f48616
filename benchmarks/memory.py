"""Peak resident memory of a run in its own process, by the length of the trace."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.measurement import Measurement
from buddysim.synthetic import make_trace

MEGA = 10**6
FULL = {"footprint": "8 GB", "instructions": "200000000"}
_REPLAY = "import buddysim, json, sys; print(json.dumps(buddysim.simulate(sys.argv[1], scheme='buddy').speed))"
TENTH = {"footprint": "8 GB", "instructions": "20000000"}


def measure(folder: Path, quick: bool) -> list[Measurement]:
    """Measure 200 million memory instructions over 8 GB, and a tenth of them (with `quick`, only those)."""
    rows = [_peak(folder, "20 M memory instructions over 8 GB", TENTH, 400.0 if quick else None)]
    if not quick:
        rows.append(_peak(folder, "200 M memory instructions over 8 GB", FULL, 400.0))
    return [row for pair in rows for row in pair]


def _peak(folder: Path, name: str, settings: dict[str, str], required: float | None) -> list[Measurement]:
    path = folder / "scale.bin"
    make_trace("scale", path, settings)
    command = [sys.executable, "-c", _REPLAY, str(path)]
    try:
        run = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    finally:
        path.unlink()
    speed_of = json.loads(run.stdout)
    peak, speed = speed_of["peak_rss_bytes"] / MEGA, speed_of["memory_instructions_per_s"] / MEGA
    return [
        Measurement.of_repetitions(f"peak memory, {name}", "MB", [peak], required=required, smaller_is_better=True),
        Measurement.of_repetitions(f"replay, {name}", "M memory instructions/s", [speed]),
    ]
