"""Speed of computing sizes, encoding and decoding entries, and sampling sizes, each on one core.

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
SAMPLED_ENTRIES = 2**24
REPETITIONS = 5
REQUIRED_GB_PER_S = 1.0

#: Compressors of entries with a required rate.
FAST = {"BPC": bpc, "BDI": bdi, "FPC": fpc}

REAL = Path(__file__).parent.parent / "tests" / "compress" / "data"

Row = dict[str, object]


def run() -> list[Row]:
    """Return every measurement: name, value, unit, and the required value (None: no requirement)."""
    rows = []
    for kind, data in kinds().items():
        for name, compressor in FAST.items():
            for path in compressor.PATHS[: compressor.PATHS.index(compressor.best_path()) + 1]:
                required = REQUIRED_GB_PER_S if path == compressor.best_path() else None
                seconds = best_seconds(lambda c=compressor, data=data, path=path: c.compressed_bits(data, path=path))  # type: ignore[misc]
                rows.append(_row(f"{name} sizes, {kind}, {path}", len(data) / seconds / 1e9, "GB/s", required))
        seconds = best_seconds(lambda data=data: entry_classes(data))  # type: ignore[misc]
        rows.append(_row(f"BPC size classes, {kind}", len(data) / seconds / 1e9, "GB/s", REQUIRED_GB_PER_S))
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
    out, distribution = np.empty(SAMPLED_ENTRIES, dtype=np.uint8), Distribution.load("isca20-dl")
    seconds = best_seconds(lambda: distribution.write(out, 0, 0))
    rows.append(_row("sizes sampled from isca20-dl", SAMPLED_ENTRIES / seconds / 1e6, "M entries/s", None))
    return rows


def kinds() -> dict[str, NDArray[np.uint8]]:
    """Return data to compress, by kind."""
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
    """Return the shortest time of some repetitions, in seconds."""
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _row(name: str, value: float, unit: str, required: float | None) -> Row:
    return {"name": name, "value": value, "unit": unit, "required": required}


def main() -> None:
    for row in run():
        required = "" if row["required"] is None else f"required: {row['required']:g}"
        print(f"{row['name']:40} {row['value']:10.2f} {row['unit']:12} {required}")


if __name__ == "__main__":
    main()
