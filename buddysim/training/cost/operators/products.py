"""Time of matrix products: tiles in waves over the multiprocessors, against the bytes of the operands.

A kernel computes the output in tiles. Of all sizes of tile, and of all numbers of parts that the inner extent is cut
into (split-k), the fastest counts, as cuBLAS's own choice is the fastest or near it. A multiprocessor computes one tile
at a time, at a fraction of its peak rate. The fraction is smaller for small tiles, which load more operands for each
product. Each tile takes as long as if the inner extent were `depth` longer: loads at its start, stores at its end. With
few tiles, a multiprocessor's own bandwidth bounds it. The last wave of tiles is partly empty. Operands that fit in the
L2 cache move faster than device memory moves them, if they are used again before others replace them. A library has not
every tile on every GPU: where the timings name their kernels, only those tiles count. Products of a batch are one
kernel, whose inner extent is not cut. Work of over a millisecond heats the GPU to its power limit, and its
clock falls; training does so all the time.

Only the four basic operations, rounding up and one root are used. `fitting.fast` has the same in numpy; a test compares
both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from buddysim.training.cost.operators.constant_values import STRICT, Amount, Rate, Sharpness, Tile
from buddysim.training.cost.operators.figures import ELEMENT_BYTES, GpuFigures

TILES = (
    (16, 64),
    (64, 16),
    (32, 64),
    (64, 32),
    (64, 64),
    (64, 128),
    (128, 64),
    (128, 128),
    (64, 256),
    (256, 64),
    (128, 256),
    (256, 128),
)
"""Rows and columns of the tiles that libraries have kernels for."""

LARGEST_SINGLE = 128
"""Rows and columns of the largest tile in fp32 without tensor cores: a larger one's results exceed the registers."""

SPLITS = (1, 2, 4, 8, 16, 32)
"""Parts of the inner extent."""

MIN_DEPTH = 64
"""Least inner extent of a part: a shorter one takes as long."""

HEATING_S = 1e-3
"""Time of a kernel, in seconds, in which half of the throttling is felt where it runs alone."""

_LARGEST = 1 / 256 + 1 / 128
_RESULT_BYTES = 2  # a result of a format of half precision, at least


@dataclass(frozen=True)
class ProductConstants:
    """Constants of products of one number format on one GPU.

    Attributes
    ----------
    floor_us : of a kernel without work: launch to end, in microseconds
    peak_fraction : of the peak rate that the largest tile reaches; sustained clocks are in it
    depth : elements by which the inner extent counts as longer
    tile_cost : elements; a tile of a rows and b columns takes 1 + tile_cost (1/a + 1/b) times as long per product
    bandwidth : fraction of the peak bandwidth of device memory
    sm_bytes : bytes of operands that a multiprocessor loads per clock, at most
    split_us : of the sum over parts, in microseconds
    sharpness : how sharply the longer of computing and moving hides the other: exponent of their norm
    whole_waves : 1 where the last wave takes as long as a full one, 0 where it takes its share
    cached : rate at which operands in the L2 cache move, over that of device memory
    throttle : part by which sustained work is slower than short work
    sets : of operands that the rows behind these constants use in turn, before one is used again
    tiles, batched_tiles : rows x columns of the library's kernels for one product and for a batch; none named: all
    """

    __pydantic_config__ = STRICT

    floor_us: Amount
    peak_fraction: Rate
    depth: Amount
    tile_cost: Amount
    bandwidth: Rate
    sm_bytes: Rate
    split_us: Amount
    sharpness: Sharpness
    whole_waves: Amount
    cached: Rate
    throttle: Amount
    sets: Rate = 1.0
    tiles: tuple[Tile, ...] = ()
    batched_tiles: tuple[Tile, ...] = ()


def tiles_of(number_format: str, names: Sequence[str] = ()) -> tuple[tuple[int, int], ...]:
    """Return rows and columns of the tiles that are named, else all of a number format."""
    if names:
        return tuple((int(rows), int(columns)) for rows, columns in (name.split("x") for name in names))
    if number_format != "fp32":
        return TILES
    return tuple(tile for tile in TILES if max(tile) <= LARGEST_SINGLE)


def product_seconds(
    constants: ProductConstants,
    gpu: GpuFigures,
    number_format: str,
    extents: tuple[int, int, int, int],
    sustained: bool = False,
) -> float:
    """Return the seconds of products in one kernel.

    Parameters
    ----------
    number_format : of the operands, a key of `ELEMENT_BYTES`
    extents : batch, m, n, k: so many products of m x k by k x n
    sustained : whether the GPU is busy throughout, as in training; else the kernel runs alone
    """
    batch, m, n, k = extents
    width = ELEMENT_BYTES[number_format]
    size = batch * (width * k * (m + n) + max(width, _RESULT_BYTES) * m * n)
    peak = gpu.dram_bytes_per_s * constants.bandwidth
    peak *= 1 + (constants.cached - 1) * min(1.0, max(0.0, 1.5 - constants.sets * size / gpu.l2_bytes))
    moved = size / peak
    rate = gpu.flops[number_format] / gpu.sms * constants.peak_fraction
    loading = constants.sm_bytes * gpu.clock_hz
    best = float("inf")
    names = constants.tiles if batch == 1 else constants.batched_tiles
    for rows, columns in tiles_of(number_format, names):
        slower = 1 + constants.tile_cost * (1 / rows + 1 / columns - _LARGEST)
        tiles = ceil(m / rows) * ceil(n / columns) * batch
        inner = 2 * rows * columns * slower / rate
        loaded = (min(rows, m) + min(columns, n)) * width / loading
        for parts in SPLITS if batch == 1 else SPLITS[:1]:
            depth = ceil(k / parts) if parts == 1 else max(MIN_DEPTH, ceil(k / parts))
            load = tiles * parts / gpu.sms
            waves = constants.whole_waves * ceil(load) + (1 - constants.whole_waves) * max(load, 1.0)
            spent = waves * max(inner * (depth + constants.depth), loaded * depth)
            if parts > 1:
                spent += constants.split_us / 1e6 + 4 * parts * m * n * batch / peak
            best = min(best, spent)
    power = constants.sharpness
    best *= 1 + constants.throttle * (1.0 if sustained else best / (best + HEATING_S))
    return constants.floor_us / 1e6 + float((best**power + moved**power) ** (1 / power))
