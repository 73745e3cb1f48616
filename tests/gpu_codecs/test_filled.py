"""Times of launches that were not simulated, compared with values by hand; codecs of independent blocks."""

from __future__ import annotations

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.gpu_codecs.block_times import BlockTimes
from buddysim.gpu_codecs.derived_samples import interpolated_samples, with_derived_samples
from buddysim.gpu_codecs.launch_surface import LaunchSurface
from buddysim.gpu_codecs.launch_times import LaunchTimes
from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.samples import CodecSample
from buddysim.gpu_codecs.times import codec_times

MIB, KIB64 = 2**20, 2**16


def sample(grid: int, sparsity: float, encode: int, size: int = 8 * MIB, block: int = 64) -> CodecSample:
    return CodecSample("m", "zvc", "chunked", grid, block, size, sparsity, 7, encode, 100, 3 * encode)


def test_launch_surface_by_hand() -> None:
    times = {(1, 64, 0.5): 1600.0, (100, 64, 0.5): 16.0, (10, 64, 0.2): 320.0, (1, 128, 0.5): 800.0}
    surface = LaunchSurface(times)
    assert (surface.block, surface.sparsity) == (64, 0.5)
    assert surface.time_at(10, 64, 0.5) == pytest.approx(160)  # in proportion to 1 / grid
    assert surface.time_at(1000, 64, 0.5) == pytest.approx(16)  # beyond
    assert surface.time_at(10, 64, 0.2) == 320
    assert surface.time_at(100, 64, 0.2) == pytest.approx(32)  # twice as long, as at grid 10
    assert surface.time_at(10, 128, 0.5) == pytest.approx(80)
    assert surface.time_at(10, 128, 0.2) == pytest.approx(160)  # twice and half as long


def test_ratios_are_interpolated_between_grids() -> None:
    surface = LaunchSurface({(g, 64, 0.5): 100.0 for g in (1, 16, 256)} | {(1, 64, 0.8): 100.0, (256, 64, 0.8): 300.0})
    assert surface.time_at(16, 64, 0.8) == pytest.approx(200)  # halfway between 1 and 256 in the logarithm


SIMULATED = [
    sample(10, 0.5, 1000), sample(40, 0.5, 250), sample(640, 0.5, 100), sample(10, 0.8, 500),
    sample(10, 0.5, 9000, 64 * MIB),
]  # fmt: skip


def test_launches_between_samples_are_interpolated() -> None:
    by_launch = {
        (s.grid, s.sparsity): s for s in interpolated_samples(SIMULATED, [LaunchShape(g, 64) for g in (10, 20, 40)])
    }
    assert set(by_launch) == {(20, 0.5), (20, 0.8), (40, 0.8)}
    assert {s.origin for s in by_launch.values()} == {"interpolated"}
    assert (by_launch[20, 0.5].encode_ps, by_launch[20, 0.5].sums_ps, by_launch[20, 0.5].decode_ps) == (500, 100, 1500)
    assert by_launch[40, 0.8].encode_ps == 125
    assert by_launch[40, 0.8].byte_count == 8 * MIB


def test_every_sample_has_an_origin_and_simulated_ones_stay() -> None:
    launches, far = [LaunchShape(g, 64) for g in (10, 20)], [LaunchShape(10, 64)]
    once = with_derived_samples(SIMULATED, launches, far)
    assert [s for s in once if s.origin == "simulated"] == SIMULATED
    beyond = [s for s in once if s.origin == "extrapolated"]
    assert [s.byte_count // MIB for s in beyond] == [500, 2000]
    # 8 MiB took 1000 and 64 MiB 9000: 500 MiB lies on the line through both points.
    assert beyond[0].encode_ps == round(1000 + 8000 * (500 - 8) / 56)
    assert with_derived_samples(once, launches, far) == once
    between = LaunchTimes(tuple(s for s in once if s.origin != "extrapolated"))
    assert between.sample_at(8 * MIB, 0.8, LaunchShape(20, 64)).origin == "interpolated"


def blocks(grid: int, count: int, encode: int, sparsity: float = 0.5, block: int = 64) -> CodecSample:
    sums = 10 * count
    return CodecSample("m", "lz4", "coalesced", grid, block, count * KIB64, sparsity, 0, encode, sums, 2 * encode)


def test_independent_blocks_by_hand() -> None:
    times = BlockTimes((blocks(1, 1, 100), blocks(8, 8, 110), blocks(8, 8, 55, 0.8), blocks(8, 32, 444)), KIB64)
    three = times.sample_at(3 * KIB64, 0.5, LaunchShape(1, 64))  # one after the other
    assert (three.encode_ps, three.sums_ps, three.decode_ps, three.origin) == (300, 30, 600, "interpolated")
    assert times.sample_at(17 * KIB64, 0.5, LaunchShape(8, 64)).encode_ps == 330  # three rounds
    assert times.sample_at(16 * KIB64, 0.65, LaunchShape(8, 64)).encode_ps == 165
    assert times.sample_at(32 * KIB64, 0.5, LaunchShape(8, 64)).encode_ps == 444  # simulated
    # More work-groups than were simulated do no better, and fewer blocks leave some idle.
    far = times.sample_at(80 * KIB64, 0.5, LaunchShape(64, 64))
    assert (far.encode_ps, far.origin) == (1100, "extrapolated")
    assert times.sample_at(KIB64, 0.5, LaunchShape(8, 64)).encode_ps == 100
    assert times.best_launch(80 * KIB64, 0.5) == LaunchShape(8, 64)
    with pytest.raises(BuddysimError, match="grid 4097: out of range: expected 1 to 4096"):
        times.sample_at(MIB, 0.5, LaunchShape(4097, 64))
    with pytest.raises(BuddysimError, match=r"sparsity 1\.5: out of range: expected a number from 0 to 1"):
        times.sample_at(MIB, 1.5, LaunchShape(8, 64))


def test_a_layout_that_a_codec_lacks() -> None:
    with pytest.raises(BuddysimError, match="codec_kernels chunked: not of codec lz4: expected one of coalesced"):
        codec_times("v100", "lz4", "chunked")
