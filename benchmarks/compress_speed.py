"""The rows of `bench_compress`, `bench_tensors` and `bench_gist` as measurements."""

from __future__ import annotations

from pathlib import Path

from benchmarks import bench_compress, bench_gist, bench_tensors
from benchmarks.measurement import Measurement

COMPARISON = "public implementations 0.11-0.15"


def measure(folder: Path, quick: bool) -> list[Measurement]:
    """Measure sizes, encoding and decoding of entries and tensors, and sampling of sizes, each on one core."""
    return [_measurement(row) for row in [*bench_compress.run(), *bench_tensors.run(), *bench_gist.run()]]


def _measurement(row: bench_compress.Row) -> Measurement:
    name, unit, value, required = str(row["name"]), str(row["unit"]), row["value"], row["required"]
    assert isinstance(value, float)
    of_cores = f"{unit} per core"
    if required is None:
        return Measurement.of_repetitions(name, of_cores, [value])
    assert isinstance(required, float)
    return Measurement.of_repetitions(
        name, of_cores, [value], required=required, comparison=COMPARISON if name.startswith("BPC") else ""
    )
