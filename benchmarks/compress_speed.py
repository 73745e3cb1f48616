"""The rows of `bench_compress`, `bench_tensors` and `bench_gist` as measurements."""

from __future__ import annotations

from pathlib import Path

from benchmarks import bench_compress, bench_gist, bench_tensors
from benchmarks.measurement import Measurement

COMPARISON = "public implementations 0.11-0.15"


def measure(folder: Path, quick: bool) -> list[Measurement]:
    """Sizes found, entries and tensors encoded and decoded, sizes drawn, each on one core."""
    return [_measurement(row) for row in [*bench_compress.run(), *bench_tensors.run(), *bench_gist.run()]]


def _measurement(row: bench_compress.Row) -> Measurement:
    name, unit, value, asked = str(row["name"]), str(row["unit"]), row["value"], row["asked"]
    assert isinstance(value, float)
    of_cores = f"{unit} per core"
    if asked is None:
        return Measurement.of_repetitions(name, of_cores, [value])
    assert isinstance(asked, float)
    return Measurement.of_repetitions(
        name, of_cores, [value], asked=asked, comparison=COMPARISON if name.startswith("BPC") else ""
    )
