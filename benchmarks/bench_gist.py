"""Speed of Gist's encodings, both ways, on one core; bytes are those of the feature map in single precision.

``python -m benchmarks.bench_gist`` prints the table; `run` gives the same rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench_compress import Row, best_seconds
from buddysim.gist import binarize, dpr, ssdc
from buddysim.gist.formats import FORMATS
from buddysim.gist.windows import Windows

REQUIRED_GB_PER_S = 1.0
PLANES, SIDE = 128, 128
POOL = Windows(SIDE, SIDE, SIDE // 2, SIDE // 2, (2, 2), (2, 2))


def run() -> list[Row]:
    """Return every measurement: name, value, unit, and the required value."""
    values = relu_output(0.5)
    gradient, pooled = np.ones_like(values), np.ones(PLANES * POOL.out_plane, np.float32)
    mask, positions = binarize.encode(values), binarize.max_positions(values, POOL)
    indices = binarize.indices_from_positions(positions, PLANES, POOL)
    works: dict[str, Callable[[], object]] = {
        "binarize, encode": lambda: binarize.encode(values),
        "binarize, backward": lambda: binarize.backward(mask, gradient),
        "binarize, positions": lambda: binarize.max_positions(values, POOL),
        "binarize, positions from indices": lambda: binarize.positions_from_indices(indices, POOL),
        "binarize, indices from positions": lambda: binarize.indices_from_positions(positions, PLANES, POOL),
        "binarize, pool backward": lambda: binarize.pool_backward(positions, pooled, POOL),
    }
    for density in (0.1, 0.5, 1.0):
        sparse = relu_output(density)
        rows = ssdc.encode(sparse)
        works[f"ssdc, encode, density {density:g}"] = lambda sparse=sparse: ssdc.encode(sparse)
        works[f"ssdc, decode, density {density:g}"] = lambda rows=rows: ssdc.decode(rows)
    for name in FORMATS:
        payload = dpr.encode(values, name)
        works[f"dpr, encode {name}"] = lambda name=name: dpr.encode(values, name)
        works[f"dpr, decode {name}"] = lambda name=name, payload=payload: dpr.decode(payload, name, values.size)
    return [
        {"name": what, "value": values.nbytes / best_seconds(work) / 1e9, "unit": "GB/s", "required": REQUIRED_GB_PER_S}
        for what, work in works.items()
    ]


def relu_output(density: float) -> NDArray[np.float32]:
    """Return normally distributed values; a random fraction of them is nonzero."""
    rng = np.random.default_rng(1)
    shape = PLANES, SIDE, SIDE
    values = np.abs(rng.standard_normal(shape, np.float32))
    return np.where(rng.random(shape) < density, values, np.float32(0))


def main() -> None:
    for row in run():
        print(f"{row['name']:40} {row['value']:10.2f} {row['unit']:12} required: {row['required']:g}")


if __name__ == "__main__":
    main()
