"""Times between and beyond simulated samples, by hand; the paper's three points; the bundled samples."""

from __future__ import annotations

import math

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.gpu_codecs import BLOCKS, LAYOUTS
from buddysim.gpu_codecs.block_times import BlockTimes
from buddysim.gpu_codecs.launch_times import LaunchTimes
from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.paper_times import BYTES, PaperTimes
from buddysim.gpu_codecs.samples import SHIPPED, CodecSample, read_samples
from buddysim.gpu_codecs.stream_times import StreamTimes
from buddysim.gpu_codecs.times import codec_times, shipped_samples

MIB = 2**20


def sample(grid: int, sparsity: float, encode: int, size: int = 8 * MIB, block: int = 64) -> CodecSample:
    return CodecSample("m", "zvc", "chunked", grid, block, size, sparsity, 0, encode, 100, 2 * encode)


BY_HAND = LaunchTimes(
    (
        sample(10, 0.2, 1000), sample(10, 0.6, 2000), sample(1000, 0.2, 3000), sample(1000, 0.6, 6000),
        sample(10, 0.2, 2000, 16 * MIB), sample(10, 0.2, 5000, 32 * MIB),
        sample(10, 0.3, 9, 16 * MIB),  # held out: another sparsity
    )
)  # fmt: skip


def test_times_are_interpolated_between_and_extrapolated_beyond_samples() -> None:
    assert BY_HAND.sample_at(8 * MIB, 0.6, LaunchShape(10, 64)).origin == "simulated"
    half = BY_HAND.sample_at(8 * MIB, 0.4, LaunchShape(10, 64))
    assert (half.encode_ps, half.sums_ps, half.decode_ps, half.origin) == (1500, 100, 3000, "interpolated")
    # Halfway between grids in the logarithm.
    assert BY_HAND.sample_at(8 * MIB, 0.2, LaunchShape(100, 64)).encode_ps == 2000
    # Twice the size took twice as long, four times the size five times: 24 MiB 3.5 times, 48 MiB 8 times.
    assert BY_HAND.sample_at(24 * MIB, 0.6, LaunchShape(10, 64)).encode_ps == 7000
    beyond = BY_HAND.sample_at(48 * MIB, 0.6, LaunchShape(10, 64))
    assert (beyond.encode_ps, beyond.sums_ps, beyond.origin) == (16000, 100, "extrapolated")
    assert BY_HAND.sample_at(8 * MIB, 0.9, LaunchShape(10, 64)).origin == "extrapolated"
    assert BY_HAND.best_launch(8 * MIB, 0.5) == LaunchShape(10, 64)


def test_bad_input_is_one_line() -> None:
    with pytest.raises(BuddysimError, match="grid 4097: out of range: expected 1 to 4096"):
        BY_HAND.sample_at(MIB, 0.5, LaunchShape(4097, 64))
    with pytest.raises(BuddysimError, match="block 128: not simulated: expected one of 64"):
        BY_HAND.sample_at(MIB, 0.5, LaunchShape(10, 128))
    with pytest.raises(BuddysimError, match=r"sparsity 1\.5: out of range: expected a number from 0 to 1"):
        BY_HAND.sample_at(MIB, 1.5, LaunchShape(10, 64))
    with pytest.raises(BuddysimError, match="on titan-x: not simulated: expected one of rtx-2080-ti, v100"):
        codec_times("titan-x", "zvc", "coalesced")


def test_the_papers_three_points() -> None:
    for grid, ms in ((10, 146), (197, 44), (1024, 150)):
        times = PaperTimes().sample_at(BYTES, 0.5, LaunchShape(grid, 64))
        assert times.total_ps == pytest.approx(ms * 1e9, abs=2)
        assert times.origin == "paper"
        assert PaperTimes().sample_at(2 * BYTES, 0.1, LaunchShape(grid, 128)).total_ps == pytest.approx(
            2 * ms * 1e9, abs=2
        )
    assert PaperTimes().sample_at(BYTES, 0.5, LaunchShape(199, 64)).origin == "fitted to the paper's three points"


#: Payload bytes of words with nonzero words at random positions.
PAYLOAD_BYTES = {
    "zvc": lambda words, nonzeros: words // 8 + 4 * nonzeros,
    "csr": lambda words, nonzeros: 4 * (words // 1024) + 8 * nonzeros,
}


@pytest.mark.parametrize("machine", ["v100", "rtx-2080-ti"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("codec", ["zvc", "csr", "rle"])
def test_shipped_samples_cover_launches_and_have_the_expected_payload(machine: str, layout: str, codec: str) -> None:
    times = codec_times(machine, codec, layout)
    assert isinstance(times, LaunchTimes)
    assert len({launch.grid for launch in times.launches}) >= 20
    assert {launch.block for launch in times.launches} == set(BLOCKS)
    for one in times.samples:
        words = one.byte_count // 4
        nonzeros = words - round(one.sparsity * words)
        if codec in PAYLOAD_BYTES:
            assert one.payload_bytes == PAYLOAD_BYTES[codec](words, nonzeros)
        else:  # a count of 2 bytes for each run of zeros; a fraction of the nonzero words follows one
            assert one.payload_bytes == pytest.approx(4 * nonzeros + 2 * nonzeros * one.sparsity, rel=0.01)
    # One work-group takes longer than many.
    assert (
        times.sample_at(8 * MIB, 0.5, LaunchShape(1, 64)).total_ps
        > 10 * times.sample_at(8 * MIB, 0.5, LaunchShape(197, 64)).total_ps
    )


@pytest.mark.parametrize("machine", ["v100", "rtx-2080-ti"])
@pytest.mark.parametrize("codec", ["zvc", "csr", "rle"])
def test_coalesced_times_predict_held_out_tensors(machine: str, codec: str) -> None:
    times = codec_times(machine, codec, "coalesced")
    assert isinstance(times, LaunchTimes)
    base = {s.sparsity for s in times.samples if s.byte_count == 8 * MIB}
    unseen = [s for s in times.samples if s.sparsity not in base and s.byte_count > 8 * MIB]
    assert unseen
    for one in unseen:
        near = times.sample_at(one.byte_count, one.sparsity + 1e-9, LaunchShape(one.grid, one.block))
        assert near.origin == "interpolated"
        assert near.total_ps == pytest.approx(one.total_ps, rel=0.08)


@pytest.mark.parametrize(("machine", "near", "far"), [("v100", 0.03, 0.2), ("rtx-2080-ti", 0.03, 0.3)])
def test_chunked_times_predict_held_out_tensors(machine: str, near: float, far: float) -> None:
    times = codec_times(machine, "csr", "chunked")
    assert isinstance(times, StreamTimes)
    sparsities = {s.sparsity for s in times.samples if s.byte_count == 8 * MIB}
    unseen = [s for s in times.samples if s.sparsity not in sparsities]
    assert {(s.grid, s.byte_count // MIB) for s in unseen} == {(197, 12), (1024, 12)}
    by_size = LaunchTimes(times.samples)  # a model that scales by size alone has larger errors
    for one in unseen:
        launch, sparsity = LaunchShape(one.grid, one.block), one.sparsity + 1e-9
        predicted = times.sample_at(one.byte_count, sparsity, launch).total_ps
        assert predicted == pytest.approx(one.total_ps, rel=near if one.grid == 197 else far)
        if one.grid == 197:
            assert abs(by_size.sample_at(one.byte_count, sparsity, launch).total_ps - one.total_ps) > abs(
                predicted - one.total_ps
            )


def test_times_of_runs_by_hand() -> None:
    """Runs have 64 or 128 words for 1 to 4 work-items: half the words take half the time."""

    def chunks(words: int, launch: LaunchShape) -> tuple[int, int]:
        unit = 64 if words <= 64 * launch.grid else 128
        units = -(-words // unit)
        return unit, -(-units // launch.grid)

    def sample(grid: int, words: int, encode: int, sums: int) -> CodecSample:
        return CodecSample("m", "csr", "chunked", grid, 64, 4 * words, 0.5, 0, encode, sums, 2 * encode)

    times = StreamTimes((sample(1, 256, 2560, 2), sample(4, 256, 640, 4), sample(4, 512, 1280, 4)), chunks)
    predicted = times.sample_at(4 * 192, 0.5, LaunchShape(4, 64))  # three runs of 64 words, where four were simulated
    assert predicted.encode_ps == pytest.approx(640)
    assert predicted.decode_ps == pytest.approx(1280)
    assert predicted.sums_ps == 3
    assert times.sample_at(4 * 384, 0.5, LaunchShape(4, 64)).encode_ps == pytest.approx(1280)  # three of 128
    assert times.sample_at(4 * 1024, 0.5, LaunchShape(1, 64)).encode_ps == pytest.approx(
        10240
    )  # eight units one after the other
    assert times.sample_at(4 * 1024, 0.5, LaunchShape(8, 64)).encode_ps == pytest.approx(
        2560
    )  # eight of 128: no more at a time


@pytest.mark.parametrize("machine", ["v100", "rtx-2080-ti"])
def test_lz4_rounds_predict_the_time_of_four_rounds(machine: str) -> None:
    times = codec_times(machine, "lz4", "coalesced")
    assert isinstance(times, BlockTimes)
    (four,) = [s for s in times.samples if s.byte_count == 4 * s.grid * 2**16]
    predicted = times.sample_at(four.byte_count, four.sparsity + 1e-9, LaunchShape(four.grid, four.block))
    assert predicted.total_ps == pytest.approx(four.total_ps, rel=0.12)


def test_every_row_has_an_origin() -> None:
    rows = read_samples(str(SHIPPED))
    assert {row.origin for row in rows} <= {"simulated", "interpolated", "extrapolated"}
    assert {row.origin for row in shipped_samples()} == {"simulated", "interpolated"}
    assert all(row.byte_count >= 500 * MIB for row in rows if row.origin == "extrapolated")
    assert all(row.byte_count == 8 * MIB for row in rows if row.origin == "interpolated")
    assert len(SHIPPED.read_bytes()) < 2**20
    assert not any(math.isnan(row.total_ps) for row in rows)
