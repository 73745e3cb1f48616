"""The formulas of `products`, `attention` and `memory_bound` over many rows at once; tests compare them with those."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.training.cost.operators.attention import BANDWIDTH, PACKED, blocks_of
from buddysim.training.cost.operators.figures import ELEMENT_BYTES, GpuFigures
from buddysim.training.cost.operators.products import HEATING_S, MIN_DEPTH, SPLITS, tiles_of
from buddysim.training.networks.recorded.work import BACKWARD_PRODUCTS

Column = NDArray[np.float64]


def products_seconds(constants: Mapping[str, Any], gpu: GpuFigures, number_format: str, extents: Column) -> Column:
    """Return `product_seconds` of rows of batch, m, n, k."""
    single = extents[:, 0] == 1
    seconds = np.empty(len(extents))
    for some, names, splits in ((single, "tiles", SPLITS), (~single, "batched_tiles", SPLITS[:1])):
        if some.any():
            tiles = tiles_of(number_format, constants[names])
            seconds[some] = _products(constants, gpu, number_format, extents[some], tiles, splits)
    return seconds


def _products(
    constants: Mapping[str, Any],
    gpu: GpuFigures,
    number_format: str,
    extents: Column,
    sizes: tuple[tuple[int, int], ...],
    splits: tuple[int, ...],
) -> Column:
    batch, m, n, k = extents.T
    width = ELEMENT_BYTES[number_format]
    size = batch * (width * k * (m + n) + max(width, 2) * m * n)
    peak = gpu.dram_bytes_per_s * constants["bandwidth"]
    peak = peak * (1 + (constants["cached"] - 1) * np.clip(1.5 - constants["sets"] * size / gpu.l2_bytes, 0, 1))
    moved = size / peak
    rate = gpu.flops[number_format] / gpu.sms * constants["peak_fraction"]
    loading = constants["sm_bytes"] * gpu.clock_hz
    whole = constants["whole_waves"]
    best = np.full(len(extents), np.inf)
    for rows, columns in sizes:
        slower = 1 + constants["tile_cost"] * (1 / rows + 1 / columns - 1 / 256 - 1 / 128)
        tiles = np.ceil(m / rows) * np.ceil(n / columns) * batch
        inner = 2 * rows * columns * slower / rate
        loaded = (np.minimum(rows, m) + np.minimum(columns, n)) * width / loading
        for parts in splits:
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
    constants: Mapping[str, Any], gpu: GpuFigures, number_format: str, extents: Column, backward: float = 0.0
) -> Column:
    """Return `attention_seconds` of causal rows of batch, tokens, heads, heads of keys, size of head and window."""
    batch, tokens, heads, kv_heads, size, window = extents.T
    rows, keys = np.array([blocks_of(constants["kernel"], int(one)) for one in size], dtype=float).T
    rate = gpu.flops[number_format] / gpu.sms * constants["peak_fraction"]
    products, moved = 4 * size, 4.0 * size * batch * tokens * (heads + kv_heads)
    if backward:
        products, moved = products * BACKWARD_PRODUCTS / backward, 2 * moved
    packed = heads / kv_heads if constants["kernel"] in PACKED else np.ones(len(extents))
    queries = rows / packed
    windowed = (window > 0) & (window < tokens)
    full = (tokens + queries + keys) / 2
    part = window - window**2 / (2 * tokens) + queries / 2 + keys
    seen = np.where(windowed, np.minimum(full, part), full)
    longest = keys * np.ceil(np.where(windowed, np.minimum(window + queries, tokens), tokens) / keys)
    each = constants["block_us"] / 1e6
    waves = batch * heads / packed * np.ceil(tokens * packed / rows) / gpu.sms
    mean = products * rows * seen / rate + each
    compute = np.maximum(mean * (waves + constants["wave"]), products * rows * longest / rate + each)
    moving = moved / min(gpu.dram_bytes_per_s * BANDWIDTH, constants["sm_bytes"] * gpu.sms * gpu.clock_hz)
    power = constants["sharpness"]
    return np.asarray(constants["floor_us"] / 1e6 + (compute**power + moving**power) ** (1 / power))


def memory_seconds(constants: Mapping[str, float], gpu: GpuFigures, moved: Column) -> Column:
    """Return `memory_seconds` of bytes."""
    power = constants["sharpness"]
    faster = 1 + (constants["cached"] - 1) * np.clip(1.5 - moved / gpu.l2_bytes, 0, 1)
    spent = moved / (gpu.dram_bytes_per_s * constants["bandwidth"] * faster)
    return np.asarray(((constants["floor_us"] / 1e6) ** power + spent**power) ** (1 / power))
