"""Errors of operators' times against measured rows: seen and for checking, and with a GPU's own rows left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from buddysim.training.cost.operators.constants import OperatorConstants, shared_constants
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.fitting import fast
from buddysim.training.cost.operators.fitting.experts import layer_seconds
from buddysim.training.cost.operators.fitting.gpu import WITH_HOST
from buddysim.training.cost.operators.memory_bound import MemoryConstants
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
    hosted = rows[0].source in WITH_HOST
    for machine in neighbours(gpu.name):
        constants = fitted.get(machine)
        if constants is None:
            continue
        if file == "products":
            for number_format in ALIKE[name]:
                product = constants.products.get(number_format)
                if product is not None:
                    floor = own.calls_us.get(name, product.floor_us) if hosted else product.floor_us
                    fraction = product.peak_fraction * gpu.rate_over(machine)
                    named_product = vars(replace(product, floor_us=floor, peak_fraction=fraction))
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
            floor = own.calls_us.get(name, memory.floor_us) if hosted else memory.floor_us
            named_memory = {"floor_us": floor, "sharpness": memory.sharpness, "bandwidth": memory.bandwidth[name]}
            return fast.memory_seconds(named_memory, gpu, extents[:, 0])
        elif file == "experts" and "bf16" in constants.products:
            shared = shared_constants()
            bandwidth = shared.memory_bandwidth if constants.memory is None else constants.memory.bandwidth
            kernels = constants.experts or {"": shared.experts}
            layer = kernels.get(name, next(iter(kernels.values())))
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
