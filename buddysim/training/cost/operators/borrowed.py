"""Constants of products that a GPU takes from another one, whose rows they were fitted to."""

from __future__ import annotations

from dataclasses import replace

from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.library import with_own_tiles
from buddysim.training.cost.operators.products import ProductConstants


def borrowed_products(
    constants: ProductConstants, gpu: GpuFigures, machine: str, number_format: str
) -> ProductConstants:
    """Return constants of products of `machine` as they count on a GPU: with its tiles, its power and its throttling.

    Parameters
    ----------
    machine : whose constants they are; the GPU's own stay as they are
    number_format : of the products
    """
    fraction = constants.peak_fraction * gpu.rate_over(machine)
    throttle = constants.throttle if gpu.throttles_as(machine, number_format) else 0.0
    return replace(with_own_tiles(constants, gpu.name), peak_fraction=fraction, throttle=throttle)
