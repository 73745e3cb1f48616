"""Fit of one GPU's constants to its rows, and of the shared ones to those of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.training.calibration import fast
from buddysim.training.calibration.experts import fit_experts
from buddysim.training.calibration.search import DIGITS, Bounds, fitted
from buddysim.training.cost.operators.attention import AttentionConstants
from buddysim.training.cost.operators.constants import (
    ExpertConstants,
    OperatorConstants,
    SharedOperatorConstants,
)
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.library import FP32_TILES, NAMED_KERNELS
from buddysim.training.cost.operators.memory_bound import CACHED, MemoryConstants
from buddysim.training.cost.operators.products import ProductConstants
from buddysim.training.cost.operators.rows import MeasuredOperator

PRODUCT_BOUNDS: Mapping[str, Bounds] = {
    "floor_us": Bounds(2.5, 0.3, 60),
    "peak_fraction": Bounds(0.75, 0.2, 1.1),
    "depth": Bounds(128, 0, 4000),
    "tile_cost": Bounds(16, 0, 400),
    "bandwidth": Bounds(0.85, 0.3, 1.0),
    "sm_bytes": Bounds(48, 4, 512),
    "split_us": Bounds(2, 0, 10),
    "sharpness": Bounds(4, 1.5, 12),
    "whole_waves": Bounds(0.3, 0, 1),
    "cached": Bounds(1.2, 1, 6),
    "throttle": Bounds(0.05, 0, 0.6),
}
SHARED_PRODUCTS = ("tile_cost", "sm_bytes", "split_us", "sharpness")
"""Constants of products that are properties of libraries, not of a GPU."""

ATTENTION_BOUNDS: Mapping[str, Bounds] = {
    "floor_us": Bounds(8, 0.5, 20),
    "peak_fraction": Bounds(0.5, 0.05, 1.2),
    "block_us": Bounds(1, 0, 50),
    "wave": Bounds(0.7, 0, 3),
    "sm_bytes": Bounds(5, 1, 60),
    "sharpness": Bounds(1.5, 1.0, 10),
}

WITH_HOST = ("n", "c", "l")
"""Sources that time a call between two events: the host's part is in the floor."""


def call_name(kind: str, source: str) -> str:
    """Return the key of `OperatorConstants.calls_us` of a kind of operator in a source."""
    return f"{kind}_{source}"


FEW_PRODUCTS = "c"
"""Source whose products are too few for constants of their own, but for the host's part."""

COLD = "l"
"""Source that empties the L2 cache before each call (Triton's `do_bench`)."""

ALONE = "v"
"""Source that times kernels alone, without the host: floors come from it."""

SETS = {"a": 6.0}
"""Sets of operands that a source uses in turn, where there are several (aiconfigurator, collector/vllm/collect_gemm.py:
`outside_loop_count`); of the rows of TensorRT-LLM, those with fewer sets are not in the files."""

PLAIN = ExpertConstants(1.0, 1.0, 1.0, 0.0)
"""Grouped products that take as long as plain ones."""

MAX_ROWS = 1200
"""Rows of one fit, the first by their order in the file's hash: more change no constant by a percent."""


def _arrays(rows: Sequence[MeasuredOperator]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.array([one.extents for one in rows], dtype=float), np.array([one.us for one in rows]) / 1e6


def _thinned(rows: Sequence[MeasuredOperator]) -> Sequence[MeasuredOperator]:
    step = max(1, -(-len(rows) // MAX_ROWS))
    return rows[::step]


def fit_products(
    gpu: GpuFigures, number_format: str, rows: Sequence[MeasuredOperator], shared: Mapping[str, float]
) -> dict[str, Any]:
    """Return the constants of one number format; those of `shared` are taken as they are."""
    extents, seconds = _arrays(_thinned(rows))
    free = {name: bounds for name, bounds in PRODUCT_BOUNDS.items() if name not in shared}
    if number_format == "fp32":
        free = {**free, "depth": Bounds(16, 0, 500), "floor_us": Bounds(20, 0.3, 60)}
    own = FP32_TILES.get(gpu.name) if rows[0].source == NAMED_KERNELS else None
    single, batched = own or ((), ())
    known = {"sets": SETS.get(rows[0].source, 1.0), "tiles": single, "batched_tiles": batched}

    def predict(tried: Mapping[str, float]) -> NDArray[np.float64]:
        return fast.products_seconds({**tried, **known}, gpu, number_format, extents)

    return {**fitted(predict, seconds, free, shared), **known}


def fit_attention(gpu: GpuFigures, rows: Sequence[MeasuredOperator], number_format: str = "bf16") -> AttentionConstants:
    """Return the constants of a version of attention.

    The size of head with most rows gives all constants, every other size a fraction of the peak of its own.
    """
    by_size: dict[int, list[MeasuredOperator]] = {}
    for one in rows:
        by_size.setdefault(one.extents[4], []).append(one)
    common: dict[str, float] = {}
    fractions = {}
    for size in sorted(by_size, key=lambda size: (-len(by_size[size]), size)):
        extents, seconds = _arrays(_thinned(by_size[size]))
        free = {name: bounds for name, bounds in ATTENTION_BOUNDS.items() if name not in common}

        def predict(tried: Mapping[str, float], extents: NDArray[np.float64] = extents) -> NDArray[np.float64]:
            return fast.attention_seconds({**tried, "kernel": rows[0].name}, gpu, number_format, extents)

        constants = fitted(predict, seconds, free, common)
        fractions[size] = constants.pop("peak_fraction")
        common = constants
    return AttentionConstants(kernel=rows[0].name, peak_fraction=dict(sorted(fractions.items())), **common)


def fit_memory(
    gpu: GpuFigures, rows: Sequence[MeasuredOperator], shared: SharedOperatorConstants | None
) -> tuple[MemoryConstants, dict[str, float]]:
    """Return the constants of kernels that memory bounds, and the host's part of calls by kind.

    Of several sources, the one with the longest kernels gives the bandwidth. Short ones find operands in the L2 cache:
    source `ALONE` gives the rate of that.
    """
    sharpness = 1.5 if shared is None else shared.memory_sharpness
    cached = 1.0 if shared is None else shared.memory_cached
    floor = 2.0 if shared is None else shared.floor_us
    bandwidth: dict[str, float] = {}
    calls: dict[str, float] = {}
    for kind in sorted({one.name for one in rows}):
        parts: dict[str, list[MeasuredOperator]] = {}
        for one in rows:
            if one.name == kind:
                parts.setdefault(one.source, []).append(one)
        constants = {}
        for letter, some in parts.items():
            start = {"floor_us": Bounds(20 if letter in WITH_HOST else 2, 0.3, 80), "bandwidth": Bounds(0.7, 0.05, 1.2)}
            fixed = {"sharpness": sharpness, "cached": cached if kind == CACHED and letter != COLD else 1.0}
            constants[letter] = _memory_constants(gpu, some, start, fixed)
            if letter in WITH_HOST:
                calls[call_name(kind, letter)] = constants[letter]["floor_us"]
        longest = max(constants, key=lambda letter: max(one.extents[0] for one in parts[letter]))
        bandwidth[kind] = constants[longest]["bandwidth"]
        if kind == CACHED and ALONE in parts:
            start = {"floor_us": Bounds(2, 0.3, 80), "cached": Bounds(1.5, 1, 10)}
            alone = {"sharpness": sharpness, "bandwidth": bandwidth[kind]}
            short = _memory_constants(gpu, parts[ALONE], start, alone)
            floor, cached = short["floor_us"], short["cached"]
    if shared is not None:
        bandwidth = {**shared.memory_bandwidth, **bandwidth}
    return MemoryConstants(floor, dict(sorted(bandwidth.items())), sharpness, cached), calls


def _memory_constants(
    gpu: GpuFigures, rows: Sequence[MeasuredOperator], free: Mapping[str, Bounds], fixed: Mapping[str, float]
) -> dict[str, float]:
    extents, seconds = _arrays(rows)
    return fitted(lambda tried: fast.memory_seconds(tried, gpu, extents[:, 0]), seconds, free, fixed)


def _call_us(
    gpu: GpuFigures, number_format: str, rows: Sequence[MeasuredOperator], constants: Mapping[str, Any]
) -> float:
    """Return the host's part of calls of products, whose other constants are those of another source."""
    extents, seconds = _arrays(rows)
    others = {name: value for name, value in constants.items() if name != "floor_us"}

    def predict(tried: Mapping[str, float]) -> NDArray[np.float64]:
        return fast.products_seconds({**others, **tried}, gpu, number_format, extents)

    return fitted(predict, seconds, {"floor_us": Bounds(20, 0.3, 80)})["floor_us"]


def fit_gpu(
    gpu: GpuFigures, rows: Mapping[str, Sequence[MeasuredOperator]], shared: SharedOperatorConstants
) -> OperatorConstants:
    """Return the constants of one GPU.

    Parameters
    ----------
    rows : for fitting, by file (`rows.FILES`)
    """
    products, calls, source = {}, {}, {}
    for number_format in sorted({one.name for one in rows["products"]}):
        some = [one for one in rows["products"] if one.name == number_format and one.source != FEW_PRODUCTS]
        constants = fit_products(gpu, number_format, some, shared.products)
        if all(one.source in WITH_HOST for one in some):
            calls[call_name(number_format, some[0].source)] = constants["floor_us"]
            constants["floor_us"] = shared.floor_us
        products[number_format] = ProductConstants(**constants)
        few = [one for one in rows["products"] if one.name == number_format and one.source == FEW_PRODUCTS]
        if few:
            calls[call_name(number_format, FEW_PRODUCTS)] = _call_us(gpu, number_format, few, constants)
        source[number_format] = "".join(sorted({one.source for one in some}))
    attention = {
        name: fit_attention(gpu, [one for one in rows["attention"] if one.name == name])
        for name in sorted({one.name for one in rows["attention"]})
    }
    memory = None
    if rows["memory"]:
        memory, memory_calls = fit_memory(gpu, rows["memory"], shared)
        calls |= memory_calls
        source["memory"] = "".join(sorted({one.source for one in rows["memory"]}))
    fractions = shared.memory_bandwidth if memory is None else memory.bandwidth
    own = OperatorConstants(gpu.name, products, attention, memory, calls_us=calls, source=source)
    if not rows["experts"]:
        return own
    by_kernel: dict[str, list[MeasuredOperator]] = {}
    for row in rows["experts"]:
        by_kernel.setdefault(row.name, []).append(row)
    by_rows = sorted(by_kernel.items(), key=lambda item: (-len(item[1]), item[0]))
    fraction = fractions["elementwise"]
    return replace(own, experts={name: fit_experts(gpu, products["bf16"], fraction, some) for name, some in by_rows})


def fit_shared(
    gpus: Mapping[str, GpuFigures], rows: Mapping[str, Mapping[str, Sequence[MeasuredOperator]]]
) -> SharedOperatorConstants:
    """Return the constants that GPUs share: medians over the GPUs given.

    Parameters
    ----------
    rows : for fitting, by GPU and file
    """
    fits, floors = [], []
    for name, gpu in gpus.items():
        for number_format in sorted({one.name for one in rows[name]["products"]}):
            some = [one for one in rows[name]["products"] if one.name == number_format and one.source == "a"]
            if some:
                fits.append(fit_products(gpu, number_format, some, {}))
                floors.append(fits[-1]["floor_us"])
    products = {name: _median(one[name] for one in fits) for name in SHARED_PRODUCTS}
    draft = SharedOperatorConstants(products, _median(floors), 1.5, 1.0, {}, PLAIN)
    bandwidth: dict[str, list[float]] = {}
    cached = []
    for name, gpu in gpus.items():
        if rows[name]["memory"]:
            memory, _ = fit_memory(gpu, rows[name]["memory"], draft)
            for kind, fraction in memory.bandwidth.items():
                bandwidth.setdefault(kind, []).append(fraction)
            if any(one.source == ALONE for one in rows[name]["memory"]):
                cached.append(memory.cached)
    fractions = {kind: _median(values) for kind, values in sorted(bandwidth.items())}
    draft = replace(draft, memory_bandwidth=fractions, memory_cached=_median(cached) if cached else 1.0)
    layers = []
    for name, gpu in gpus.items():
        if rows[name]["experts"]:
            some = [one for one in rows[name]["products"] if one.name == "bf16"]
            constants = ProductConstants(**fit_products(gpu, "bf16", some, products))
            fraction = draft.memory_bandwidth["elementwise"]
            kernel = Counter(one.name for one in rows[name]["experts"]).most_common(1)[0][0]
            own = [one for one in rows[name]["experts"] if one.name == kernel]
            layers.append(asdict(fit_experts(gpu, constants, fraction, own)))
    if not layers:
        return draft
    shared = {name: _median(one[name] for one in layers) for name in layers[0]}
    return replace(draft, experts=ExpertConstants(**shared))


def _median(values: Iterable[float]) -> float:
    return round(median(values), DIGITS)
