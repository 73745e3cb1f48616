"""Records decoded per second by one thread: the warp operations of whole traces, checksums verified."""

from __future__ import annotations

from pathlib import Path

import buddysim
from benchmarks.measurement import Measurement, repeated, timed
from buddysim.synthetic import make_trace

MILLION = 10**6
REAL = Path(__file__).parent.parent / "traces" / "fdtd2048.bin"
COMPARISON = "Arrow IPC on the same transformed columns 52; Parquet 20; HDF5 30-60"


def measure(folder: Path, quick: bool) -> list[Measurement]:
    """Measure a real trace, and fully divergent random loads."""
    make_trace("random", folder / "divergent.bin", {"operations": "20000" if quick else "100000"})
    rows = []
    if REAL.exists():
        rows.append(_records("decoding, fdtd2048 (a record: an operation of 32 B)", REAL, "ops", 50.0, 8, quick))
    rows.append(
        _records("decoding, random (a record: a line of 8 B)", folder / "divergent.bin", "lines", None, 1, quick)
    )
    return rows


def _records(name: str, path: Path, counted: str, required: float | None, repetitions: int, quick: bool) -> Measurement:
    with buddysim.open_trace(path) as trace:
        chunks = [ref for kernel in trace.kernels for ref in kernel.chunks] * repetitions
        records = sum(getattr(ref, f"n_{counted}") for ref in chunks)

        def decode() -> None:
            for ref in chunks:
                trace.decode_chunk(ref)

        figures = repeated(lambda: records / timed(decode)[1].core_s / MILLION, quick)
    return Measurement.of_repetitions(
        name, "M records/s", figures, required=required, comparison=COMPARISON if required else ""
    )
