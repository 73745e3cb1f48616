"""Time of matrix products, computed by hand, and the fast formula against the readable one."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.training.calibration import fast
from buddysim.training.cost.operators.figures import GpuFigures
from buddysim.training.cost.operators.library import FP32_TILES, with_own_tiles
from buddysim.training.cost.operators.products import ProductConstants, product_seconds

#: 10 multiprocessors of 1 TFLOP/s each, 1 TB/s, no cache that matters.
GPU = GpuFigures("by-hand", 10, 1e9, 1e12, 1.0, {"bf16": 1e13, "fp32": 1e13})
PLAIN = ProductConstants(1.0, 1.0, 0.0, 0.0, 1.0, 1e6, 0.0, 50.0, 1.0, 1.0, 0.0)


def test_one_wave_of_large_tiles_by_hand() -> None:
    """Ten tiles of 128 x 256 on ten multiprocessors: 2 x 128 x 256 x 8192 FLOPs at 1 TFLOP/s, and a floor of 1 us."""
    spent = product_seconds(PLAIN, GPU, "bf16", (1, 1280, 256, 8192))
    assert spent == pytest.approx(2 * 128 * 256 * 8192 / 1e12 + 1e-6, rel=1e-6)


def test_eleven_tiles_take_two_waves() -> None:
    """With tiles of one cost each, an eleventh row of tiles takes as long as ten more, if waves are whole."""
    no_split = replace(PLAIN, split_us=1e6, tile_cost=1e4)
    assert product_seconds(no_split, GPU, "bf16", (1, 11 * 128, 256, 8192)) == pytest.approx(
        2 * 2 * 128 * 256 * 8192 / 1e12 + 1e-6, rel=1e-6
    )
    part = replace(no_split, whole_waves=0.0)
    assert product_seconds(part, GPU, "bf16", (1, 11 * 128, 256, 8192)) == pytest.approx(
        1.1 * 2 * 128 * 256 * 8192 / 1e12 + 1e-6, rel=1e-6
    )


def test_a_product_of_one_row_is_bound_by_its_weights() -> None:
    """4096 x 4096 weights of 2 bytes at 1 TB/s: 33.6 us; sums over parts are free here."""
    wide = replace(PLAIN, peak_fraction=1e3)
    moved = 2 * (4096 * 4096 + 2 * 4096)
    assert product_seconds(wide, GPU, "bf16", (1, 1, 4096, 4096)) == pytest.approx(moved / 1e12 + 1e-6, rel=1e-3)


def test_parts_of_the_inner_extent_fill_the_gpu() -> None:
    """One tile with a deep inner extent: parts of it run on all ten multiprocessors."""
    alone = product_seconds(replace(PLAIN, split_us=1e6), GPU, "bf16", (1, 64, 64, 1 << 16))
    parts = product_seconds(PLAIN, GPU, "bf16", (1, 64, 64, 1 << 16))
    assert parts < alone / 2


def test_sustained_work_is_slower_by_the_throttle() -> None:
    heated = replace(PLAIN, throttle=0.2, floor_us=0.0)
    cold = product_seconds(replace(PLAIN, floor_us=0.0), GPU, "bf16", (1, 1280, 256, 8192))
    assert product_seconds(heated, GPU, "bf16", (1, 1280, 256, 8192), sustained=True) == pytest.approx(1.2 * cold)
    assert cold < product_seconds(heated, GPU, "bf16", (1, 1280, 256, 8192)) < 1.2 * cold


def test_operands_in_the_cache_move_faster() -> None:
    cached = replace(GPU, l2_bytes=1e9)
    doubled = replace(PLAIN, cached=2.0, peak_fraction=1e3)
    slow = product_seconds(doubled, GPU, "bf16", (1, 1, 4096, 4096)) - 1e-6
    assert product_seconds(doubled, cached, "bf16", (1, 1, 4096, 4096)) - 1e-6 == pytest.approx(slow / 2, rel=0.01)


def test_operands_that_others_replace_are_not_in_the_cache() -> None:
    """Six sets of 33.6 MB in turn don't stay in a cache of 40 MB, which holds one."""
    gpu = replace(GPU, l2_bytes=4e7)
    used_again = replace(PLAIN, cached=2.0, peak_fraction=1e3)
    single = product_seconds(used_again, gpu, "bf16", (1, 1, 4096, 4096))
    assert product_seconds(replace(used_again, sets=6.0), gpu, "bf16", (1, 1, 4096, 4096)) > 1.5 * single


def test_only_tiles_of_the_library_count() -> None:
    """A batch of 64 columns in tiles of 128 columns: half of the work is for nothing."""
    wide, narrow = (replace(PLAIN, batched_tiles=(tile,), tiles=("64x64",)) for tile in ("64x128", "64x64"))
    spent = [product_seconds(one, GPU, "fp32", (100, 64, 64, 4096)) - 1e-6 for one in (wide, narrow)]
    assert spent[0] == pytest.approx(2 * spent[1])
    assert spent[1] == pytest.approx(10 * 2 * 64 * 64 * 4096 / 1e12)
    single = [product_seconds(one, GPU, "fp32", (1, 64, 64, 4096)) for one in (wide, narrow)]
    assert single[0] == single[1]


def test_products_of_a_batch_are_not_cut() -> None:
    """Two deep products of one tile take as long as one does without parts."""
    whole = product_seconds(replace(PLAIN, split_us=1e6), GPU, "bf16", (1, 64, 64, 1 << 16))
    assert product_seconds(PLAIN, GPU, "bf16", (2, 64, 64, 1 << 16)) == pytest.approx(whole)


def test_constants_of_a_neighbour_count_with_the_own_tiles() -> None:
    borrowed = with_own_tiles(replace(PLAIN, tiles=("1x1",), batched_tiles=("2x2",)), "p100")
    assert (borrowed.tiles, borrowed.batched_tiles) == FP32_TILES["p100"]
    assert with_own_tiles(PLAIN, "p100") == PLAIN
    other = replace(PLAIN, tiles=("1x1",))
    assert with_own_tiles(other, "rtx-2080-ti") == other


constants = st.builds(
    ProductConstants,
    floor_us=st.floats(0.5, 50),
    peak_fraction=st.floats(0.2, 1),
    depth=st.floats(0, 500),
    tile_cost=st.floats(0, 100),
    bandwidth=st.floats(0.3, 1),
    sm_bytes=st.floats(4, 200),
    split_us=st.floats(0, 10),
    sharpness=st.floats(1.5, 8),
    whole_waves=st.floats(0, 1),
    cached=st.floats(1, 4),
    throttle=st.floats(0, 0.5),
    sets=st.sampled_from([1.0, 6.0]),
    tiles=st.sampled_from([(), ("128x32", "64x64")]),
    batched_tiles=st.sampled_from([(), ("64x128",)]),
)
extent = st.integers(1, 70000)


@given(constants, st.sampled_from(("bf16", "fp32")), st.tuples(st.integers(1, 64), extent, extent, extent))
def test_the_fast_formula_is_the_readable_one(
    one: ProductConstants, number_format: str, extents: tuple[int, int, int, int]
) -> None:
    gpu = replace(GPU, l2_bytes=5e7)
    quick = fast.products_seconds(asdict(one), gpu, number_format, np.array([extents], dtype=float))
    assert quick[0] == pytest.approx(product_seconds(one, gpu, number_format, extents), rel=1e-9)
