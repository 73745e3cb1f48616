"""The formulas of `products`, `attention` and `memory_bound` over many rows at once; tests compare them with those."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from buddysim.training.cost.operators.attention import QUERIES
from buddysim.training.cost.operators.figures import ELEMENT_BYTES, GpuFigures
from buddysim.training.cost.operators.products import HEATING_S, MIN_DEPTH, SPLITS, tiles_of
from buddysim.training.networks.recorded.work import BACKWARD_PRODUCTS

Column = NDArray[np.float64]


def products_seconds(constants: Mapping[str, float], gpu: GpuFigures, number_format: str, extents: Column) -> Column:
    """Return `product_seconds` of rows of batch, m, n, k."""
    batch, m, n, k = extents.T
    width = ELEMENT_BYTES[number_format]
    size = batch * (width * k * (m + n) + max(width, 2) * m * n)
    peak = gpu.dram_bytes_per_s * constants["bandwidth"]
    peak = peak * (1 + (constants["cached"] - 1) * np.clip(1.5 - size / gpu.l2_bytes, 0, 1))
    moved = size / peak
    rate = gpu.flops[number_format] / gpu.sms * constants["peak_fraction"]
    loading = constants["sm_bytes"] * gpu.clock_hz
    whole = constants["whole_waves"]
    best = np.full(len(extents), np.inf)
    for rows, columns in tiles_of(number_format):
        slower = 1 + constants["tile_cost"] * (1 / rows + 1 / columns - 1 / 256 - 1 / 128)
        tiles = np.ceil(m / rows) * np.ceil(n / columns) * batch
        inner = 2 * rows * columns * slower / rate
        loaded = (np.minimum(rows, m) + np.minimum(columns, n)) * width / loading
        for parts in SPLITS:
            depth = np.ceil(k / parts) if parts == 1 else np.maximum(MIN_DEPTH, np.ceil(k / parts))
            load = tiles * parts / gpu.sms
            waves = whole * np.ceil(load) + (1 - whole) * np.maximum(load, 1.0)
            spent = waves * np.maximum(inner * (depth + constants["depth"]), loaded * depth)
            if parts > 1:
                spent = spent + constants["split_us"] / 1e6 + 4 * parts * m * n * batch / peak
            best = np.minimum(best, spent)
    best = best * (1 + constants["throttle"] * best / (best + HEATING_S))
    power = constants["sharpness"]
    return np.asarray(constants["floor_us"] / 1e6 + (best**power + moved**power) ** (1 / power))


def attention_seconds(
    constants: Mapping[str, float], gpu: GpuFigures, number_format: str, extents: Column, backward: float = 0.0
) -> Column:
    """Return `attention_seconds` of causal rows of batch, tokens, heads, heads of keys, size of head and window."""
    batch, tokens, heads, kv_heads, size, window = extents.T
    rate = gpu.flops[number_format] / gpu.sms * constants["peak_fraction"]
    products, moved = 4 * size, 4.0 * size * batch * tokens * (heads + kv_heads)
    if backward:
        products, moved = products * BACKWARD_PRODUCTS / backward, 2 * moved
    windowed = (window > 0) & (window < tokens)
    full = tokens * (tokens + QUERIES) / 2
    part = window * tokens - window**2 / 2 + tokens * QUERIES / 2
    seen = np.where(windowed, np.minimum(part, full), full)
    longest = np.where(windowed, np.minimum(window + QUERIES, tokens), tokens)
    blocks = np.ceil(tokens / QUERIES)
    each = constants["block_us"] / 1e6
    waves = batch * heads / gpu.sms
    total = waves * (products * seen / rate + blocks * each)
    slowest = products * np.minimum(QUERIES, tokens) * longest / rate + each
    compute = np.maximum(total * (1 + constants["wave"] / (waves * blocks)), slowest)
    moving = moved / (gpu.dram_bytes_per_s * constants["bandwidth"])
    power = constants["sharpness"]
    return np.asarray(constants["floor_us"] / 1e6 + (compute**power + moving**power) ** (1 / power))


def memory_seconds(constants: Mapping[str, float], gpu: GpuFigures, moved: Column) -> Column:
    """Return `memory_seconds` of bytes."""
    power = constants["sharpness"]
    spent = moved / (gpu.dram_bytes_per_s * constants["bandwidth"])
    return np.asarray(((constants["floor_us"] / 1e6) ** power + spent**power) ** (1 / power))
