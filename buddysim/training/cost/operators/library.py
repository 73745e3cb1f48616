"""Tiles of a library's kernels in fp32, as timings name them: cuBLAS has not every tile on every GPU.

Which kernels a library has is no timing: constants that a GPU takes from a neighbour count with its own tiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from buddysim.training.cost.operators.products import ProductConstants

NAMED_KERNELS = "n"
"""Source that names the kernel of each of its rows."""

FP32_TILES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a100-40": (("128x128", "32x128", "64x128", "128x32", "32x32", "32x64", "64x64"), ("128x128",)),
    "a100-80": (("128x128", "32x128", "64x128", "128x32", "32x32", "32x64", "64x64"), ("128x128",)),
    "h100-sxm": (
        ("128x128", "128x64", "256x64", "64x128", "64x64", "128x256"),
        ("128x256", "128x128", "128x32", "128x64", "256x64", "32x32", "64x128", "64x256", "64x64"),
    ),
    "l4": (("128x128", "64x128", "64x64", "128x256", "256x128"), ("128x128",)),
    "p100": (("128x32", "64x64"), ("64x128",)),
    "t4": (("128x128", "64x128", "64x64"), ("64x128", "64x64", "32x128")),
    "v100": (("128x128", "32x128", "64x128", "128x32", "32x64"), ("128x32", "64x64")),
}
"""Rows x columns of the tiles that the kernels of `NAMED_KERNELS` have in their names, of one product (operands along
the inner extent) and of a batch, where over 20 rows have them. Their blocks say which of the two numbers is of rows."""


def with_own_tiles(constants: ProductConstants, machine: str) -> ProductConstants:
    """Return a neighbour's constants with the tiles of a GPU's own library, where they are known and count."""
    if not constants.tiles or machine not in FP32_TILES:
        return constants
    single, batched = FP32_TILES[machine]
    return replace(constants, tiles=single, batched_tiles=batched)
