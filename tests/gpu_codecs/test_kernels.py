"""Kernels of codecs give, or decode, the payloads of the compressors, in every layout and launch."""

from __future__ import annotations

from functools import cache
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import compress, decompress
from buddysim.compress.lz4 import available
from buddysim.gpu_codecs import REGISTRY, lz4
from buddysim.gpu_codecs.opencl_device import LaunchShape, OpenclDevice, Words
from buddysim.gpu_codecs.synthetic_tensor import synthetic_words
from buddysim.gpu_codecs.warp_program import main, payload_matches

pytest.importorskip("pyopencl")
pytestmark = pytest.mark.slow
needs_lz4 = pytest.mark.skipif(not available(), reason="the LZ4 library is not installed")

KINDS = [
    pytest.param(codec, layout, marks=needs_lz4 if codec == "lz4" else ())
    for codec in REGISTRY.names()
    for layout in REGISTRY.find(codec).LAYOUTS
]
kinds = pytest.mark.parametrize(("codec", "layout"), KINDS)


@cache
def gpu(codec: str) -> OpenclDevice:
    return OpenclDevice(REGISTRY.find(codec).SOURCES)


def check(codec: str, layout: str, words: Words, launch: LaunchShape) -> bytes:
    payload, back = REGISTRY.find(codec).run(gpu(codec), words, layout, launch)
    assert payload_matches(codec, payload, words)
    assert back.tobytes() == words.tobytes()
    return bytes(payload)


@kinds
@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 7000),
    st.floats(0, 1),
    st.sampled_from([1, 2, 7, 64, 300]),
    st.sampled_from([64, 128]),
    st.integers(0, 2**32 - 1),
)
def test_payload_equals_the_compressors(
    codec: str, layout: str, count: int, sparsity: float, grid: int, block: int, seed: int
) -> None:
    check(codec, layout, synthetic_words(4 * count, sparsity, seed), LaunchShape(grid, block))


@kinds
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 700)), min_size=1, max_size=20), st.sampled_from([1, 3, 40])
)
def test_long_runs(codec: str, layout: str, runs: list[tuple[int, int]], grid: int) -> None:
    """Return runs of zeros, of one word and of different words, longer than a byte counts."""
    noise = synthetic_words(4 * 700, 0.0)
    runs_of_words = [noise[:count] if kind == 2 else np.full(count, kind, np.uint32) for kind, count in runs]
    check(codec, layout, np.concatenate(runs_of_words), LaunchShape(grid, 64))


@kinds
@pytest.mark.parametrize("sparsity", [0.0, 1.0])
def test_dense_and_empty_tensors(codec: str, layout: str, sparsity: float) -> None:
    check(codec, layout, synthetic_words(2**20, sparsity), LaunchShape(80, 64))


@needs_lz4
@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60_000), st.floats(0, 1), st.sampled_from([1, 2, 5]), st.sampled_from([1, 9]))
def test_decoder_reads_blocks_of_liblz4(count: int, sparsity: float, grid: int, level: int) -> None:
    words = synthetic_words(4 * count, sparsity)
    raw = words.tobytes()
    raw_blocks = [raw[at : at + lz4.BLOCK] for at in range(0, len(raw), lz4.BLOCK)]
    blocks = [compress(block, "lz4", level=level, window=lz4.BLOCK) for block in raw_blocks]
    joined = np.frombuffer(b"".join(blocks) + bytes(-sum(map(len, blocks)) % 4), np.uint32)
    starts = np.array([0, *accumulate(map(len, blocks))], np.uint32)
    device = gpu("lz4")
    payload, index = device.buffer(len(joined), joined), device.buffer(len(starts), starts)
    assert lz4.decoded(device, payload, index, len(raw), "coalesced", LaunchShape(grid, 64)).tobytes() == raw


@needs_lz4
@pytest.mark.parametrize("block", [64, 128])
@pytest.mark.parametrize("what", ["0.2", "0.5", "0.8", "text", "steps"])
def test_lz4_is_as_small_as_level_1(what: str, block: int) -> None:
    rng = np.random.default_rng(0)
    if what == "text":
        vocabulary = rng.integers(97, 123, (2000, 6), np.uint8)
        words = vocabulary[rng.zipf(1.3, 60_000) % 2000].reshape(-1)[: 4 * 80_000].copy().view(np.uint32)
    elif what == "steps":
        words = np.repeat(rng.integers(0, 2**32, 4000, np.uint32), rng.integers(1, 40, 4000))
    else:
        words = synthetic_words(4 * 60_000, float(what))
    bytes_of_codec = len(check("lz4", "coalesced", words, LaunchShape(3, block)))
    bytes_of_liblz4 = len(compress(words, "lz4", level=1, window=lz4.BLOCK))
    assert abs(bytes_of_codec / bytes_of_liblz4 - 1) < 0.05


@needs_lz4
def test_a_block_ends_in_literals() -> None:
    """Other decoders rely on a last sequence of at least five bytes without a match."""
    words = np.zeros(5000, np.uint32)
    payload = check("lz4", "coalesced", words, LaunchShape(1, 64))
    assert payload[-6] >> 4 == 5
    assert decompress(payload, "lz4", words.nbytes, window=lz4.BLOCK) == words.tobytes()


def test_program_prints_the_payload_length(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zvc", "chunked", "65536", "0.5", "3:64", "2:128"]) == 0
    assert int(capsys.readouterr().out) == 65536 // 32 + 65536 // 2
    assert np.count_nonzero(synthetic_words(65536, 0.5)) == 8192


def test_program_refuses_a_payload_of_other_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY.find("csr").STORED_AS, "window", 2048)
    with pytest.raises(BuddysimError, match="csr, coalesced, 3:64: expected the compressor's bytes"):
        main(["csr", "coalesced", "65536", "0.5", "3:64"])
