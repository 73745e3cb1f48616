"""Speed of compressing tensors, both ways, on one core.

``python -m benchmarks.bench_tensors`` prints the table; `run` gives the same rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench_compress import Row, best_seconds
from buddysim.compress import compress, compressed_bits, decompress
from buddysim.compress.compressors import tensor_algorithms

BYTES = 8 * 2**20
ZLIB_BYTES = 2**20
WINDOW = 4096
REQUIRED_GB_PER_S = 1.0


def run() -> list[Row]:
    """Return every measurement: name, value, unit, and the required value (None: no requirement)."""
    rows: list[Row] = []
    for bits in (32, 16, 8):
        for density in (0.1, 0.5, 1.0):
            rows += _both_ways("zvc", f"{bits} bits, density {density:g}", words(bits, density), word_bits=bits)
    for density in (0.1, 0.5, 1.0):
        for kind in ("zero", "value"):
            rows += _both_ways("rle", f"{kind}, density {density:g}", words(32, density), kind=kind)
        for index_bytes in (4, 1):
            what = f"index of {index_bytes} B, density {density:g}"
            rows += _both_ways("csr", what, words(32, density), index_bytes=index_bytes)
    if "lz4" in tensor_algorithms():
        rows += _both_ways("lz4", "density 0.5", words(32, 0.5))
    rows += _both_ways("zlib", "density 0.5", words(32, 0.5)[:ZLIB_BYTES])
    return rows


def words(bits: int, density: float) -> NDArray[np.uint8]:
    """Return words, a random fraction of them nonzero: the hardest case for a branch predictor."""
    rng = np.random.default_rng(1)
    count = BYTES * 8 // bits
    values = rng.integers(1, 2**bits, count, dtype=f"u{bits // 8}")
    return (values * (rng.random(count) < density)).astype(f"u{bits // 8}").view(np.uint8)


def _both_ways(algorithm: str, what: str, data: NDArray[np.uint8], **options: object) -> list[Row]:
    options = {"window": WINDOW, **options}
    payload = compress(data, algorithm, **options)
    works = {
        "sizes": lambda: compressed_bits(data, algorithm, **options),
        "encode": lambda: compress(data, algorithm, **options),
        "decode": lambda: decompress(payload, algorithm, len(data), **options),
    }
    required = REQUIRED_GB_PER_S if algorithm == "zvc" else None
    return [
        {
            "name": f"{algorithm} {verb}, {what}",
            "value": len(data) / best_seconds(work) / 1e9,
            "unit": "GB/s",
            "required": required,
        }
        for verb, work in works.items()
    ]


def main() -> None:
    for row in run():
        required = "" if row["required"] is None else f"required: {row['required']:g}"
        print(f"{row['name']:40} {row['value']:10.2f} {row['unit']:12} {required}")


if __name__ == "__main__":
    main()
