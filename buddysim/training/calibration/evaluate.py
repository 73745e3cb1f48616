"""Errors of operators' times against measured rows: seen and for checking, and with a GPU's own rows left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from buddysim.training.calibration import fast
from buddysim.training.calibration.experts import layer_seconds
from buddysim.training.calibration.gpu import COLD, WITH_HOST, call_name
from buddysim.training.cost.operators.borrowed import borrowed_products
from buddysim.training.cost.operators.constants import OperatorConstants, shared_constants
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.memory_bound import CACHED, MemoryConstants
from buddysim.training.cost.operators.model import ALIKE, neighbours
from buddysim.training.cost.operators.rows import MeasuredOperator


def predicted_seconds(
    gpu: GpuFigures,
    file: str,
    rows: Sequence[MeasuredOperator],
    own: OperatorConstants,
    fitted: Mapping[str, OperatorConstants],
) -> NDArray[np.float64] | None:
    """Return predictions of rows of one kind and name; None where no GPU has constants for them.

    Parameters
    ----------
    own : whose host's part of calls counts
    fitted : constants that may be used, by GPU
    """
    name, extents = rows[0].name, np.array([one.extents for one in rows], dtype=float)
    hosted, call = rows[0].source in WITH_HOST, call_name(name, rows[0].source)
    for machine in neighbours(gpu.name, name):
        constants = fitted.get(machine)
        if constants is None:
            continue
        if file == "products":
            for number_format in ALIKE[name]:
                product = constants.products.get(number_format)
                if product is not None:
                    floor = own.calls_us.get(call, product.floor_us) if hosted else product.floor_us
                    named_product = vars(replace(borrowed_products(product, gpu, machine, name), floor_us=floor))
                    return fast.products_seconds(named_product, gpu, name, extents)
        elif file == "attention" and constants.attention:
            version = constants.attention.get(name)
            if version is not None:
                fractions = np.array([version.peak_fraction.get(int(size), np.nan) for size in extents[:, 4]])
                fractions *= gpu.rate_over(machine)
                named = {**vars(version), "peak_fraction": fractions}
                return fast.attention_seconds(named, gpu, "bf16", extents)
        elif file == "memory" and constants.memory is not None:
            memory: MemoryConstants = constants.memory
            floor = own.calls_us.get(call, memory.floor_us) if hosted else memory.floor_us
            named_memory = {**vars(memory), "floor_us": floor, "bandwidth": memory.bandwidth[name]}
            named_memory["cached"] = memory.cached if name == CACHED and rows[0].source != COLD else 1.0
            return fast.memory_seconds(named_memory, gpu, extents[:, 0])
        elif file == "experts" and "bf16" in constants.products:
            shared = shared_constants()
            bandwidth = shared.memory_bandwidth if constants.memory is None else constants.memory.bandwidth
            order = [near for near in dict.fromkeys((*neighbours(gpu.name), *fitted)) if near in fitted]
            around = [fitted[near].experts for near in order if fitted[near].experts]
            alike = [kernels[name] for kernels in around if name in kernels]
            others = [next(iter(kernels.values())) for kernels in around]
            layer = next(iter([*alike, *others, shared.experts]))
            return layer_seconds(layer, gpu, constants.products["bf16"], bandwidth["elementwise"], rows)
    return None


def errors(
    gpu: GpuFigures,
    file: str,
    rows: Sequence[MeasuredOperator],
    own: OperatorConstants,
    fitted: Mapping[str, OperatorConstants],
) -> NDArray[np.float64] | None:
    """Return relative errors, predicted / measured - 1; None as `predicted_seconds`."""
    seconds = predicted_seconds(gpu, file, rows, own, fitted)
    if seconds is None:
        return None
    return np.asarray(seconds * 1e6 / np.array([one.us for one in rows]) - 1)
