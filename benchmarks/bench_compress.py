"""How fast sizes are computed, entries encoded and decoded, and sizes drawn, each on one core.

``python -m benchmarks.bench_compress`` prints the table; `run` gives the same rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from buddysim.buddy import Distribution
from buddysim.compress import bdi, bpc, compress, compressed_bits, decompress, entry_classes, fpc, fvc

BYTES = 64 * 2**20
CODED_BYTES = 2**20
DRAWN_ENTRIES = 2**24
REPEATS = 5
ASKED_GB_PER_S = 1.0

#: Compressors of entries of which a rate is asked.
FAST = {"BPC": bpc, "BDI": bdi, "FPC": fpc}

REAL = Path(__file__).parent.parent / "tests" / "compress" / "data"

Row = dict[str, object]


def run() -> list[Row]:
    """Every measurement: name, value, unit, and what was asked of it (None where nothing was)."""
    rows = []
    for kind, data in kinds().items():
        for name, compressor in FAST.items():
            for path in compressor.PATHS[: compressor.PATHS.index(compressor.best_path()) + 1]:
                asked = ASKED_GB_PER_S if path == compressor.best_path() else None
                seconds = best_seconds(lambda c=compressor, data=data, path=path: c.compressed_bits(data, path=path))  # type: ignore[misc]
                rows.append(_row(f"{name} sizes, {kind}, {path}", len(data) / seconds / 1e9, "GB/s", asked))
        seconds = best_seconds(lambda data=data: entry_classes(data))  # type: ignore[misc]
        rows.append(_row(f"BPC size classes, {kind}", len(data) / seconds / 1e9, "GB/s", ASKED_GB_PER_S))
    pages = kinds()["real pages"]
    table = fvc.options_from_sample([pages])
    for name, work in {
        "FVC sizes": lambda: compressed_bits(pages, "fvc", **table),
        "FVC table": lambda: fvc.options_from_sample([pages]),
        "C-Pack sizes": lambda: compressed_bits(pages, "cpack"),
    }.items():
        rows.append(_row(f"{name}, real pages", len(pages) / best_seconds(work) / 1e9, "GB/s", None))
    some = pages[:CODED_BYTES]
    for name, compressor in FAST.items():
        algorithm = compressor.__name__.rpartition(".")[2]
        payload = compress(some, algorithm)
        seconds = best_seconds(lambda algorithm=algorithm: compress(some, algorithm))  # type: ignore[misc]
        rows.append(_row(f"{name} encode, real pages", CODED_BYTES / seconds / 1e6, "MB/s", None))
        seconds = best_seconds(lambda p=payload, a=algorithm: decompress(p, a, CODED_BYTES))  # type: ignore[misc]
        rows.append(_row(f"{name} decode and check, real pages", CODED_BYTES / seconds / 1e6, "MB/s", None))
    out, distribution = np.empty(DRAWN_ENTRIES, dtype=np.uint8), Distribution.load("isca20-dl")
    seconds = best_seconds(lambda: distribution.write(out, 0, 0))
    rows.append(_row("sizes drawn from isca20-dl", DRAWN_ENTRIES / seconds / 1e6, "M entries/s", None))
    return rows


def kinds() -> dict[str, NDArray[np.uint8]]:
    """Data to compress, by what it is."""
    rng = np.random.default_rng(1)
    words = BYTES // 4
    pages = np.concatenate([np.fromfile(path, np.uint8) for path in sorted(REAL.glob("*.bin"))])
    return {
        "real pages": np.tile(pages, -(-BYTES // len(pages)))[:BYTES],
        "random": rng.integers(0, 2**32, words, dtype=np.uint32).view(np.uint8),
        "zeros": np.zeros(BYTES, np.uint8),
        "small steps": np.cumsum(rng.integers(-3, 4, words), dtype=np.int64).astype(np.uint32).view(np.uint8),
        "smooth fp32": np.sin(np.arange(words, dtype=np.float32) / 500).view(np.uint8),
    }


def best_seconds(work: Callable[[], object]) -> float:
    """The least time of some repeats, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _row(name: str, value: float, unit: str, asked: float | None) -> Row:
    return {"name": name, "value": value, "unit": unit, "asked": asked}


def main() -> None:
    for row in run():
        asked = "" if row["asked"] is None else f"asked: {row['asked']:g}"
        print(f"{row['name']:40} {row['value']:10.2f} {row['unit']:12} {asked}")


if __name__ == "__main__":
    main()
