"""The codecs' kernels: byte for byte the package's compressors, in every layout and launch."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.compress import compress
from buddysim.gpu_codecs import LAYOUTS, REGISTRY
from buddysim.gpu_codecs.gpu import Gpu, Launch, Words
from buddysim.gpu_codecs.program import main
from buddysim.gpu_codecs.tensor import synthetic

pytest.importorskip("pyopencl")
codecs = pytest.mark.parametrize("codec", REGISTRY.names())
pytestmark = pytest.mark.slow


@cache
def gpu(codec: str) -> Gpu:
    return Gpu(REGISTRY.find(codec).SOURCES)


def coded(codec: str, words: Words, layout: str, launch: Launch) -> tuple[bytes, bytes]:
    code, back = REGISTRY.find(codec).run(gpu(codec), words, layout, launch)
    return code.tobytes(), back.tobytes()


@codecs
@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 200),
    st.floats(0, 1),
    st.sampled_from(LAYOUTS),
    st.sampled_from([1, 2, 7, 64, 300]),
    st.sampled_from([64, 128]),
    st.integers(0, 2**32 - 1),
)
def test_codes_are_those_of_the_package(
    codec: str, groups: int, sparsity: float, layout: str, grid: int, block: int, seed: int
) -> None:
    words = synthetic(groups * 128, sparsity, seed)
    code, back = coded(codec, words, layout, Launch(grid, block))
    assert code == compress(words, codec, **REGISTRY.find(codec).STORED_AS)
    assert back == words.tobytes()


@codecs
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sparsity", [0.0, 1.0])
def test_the_ends(codec: str, layout: str, sparsity: float) -> None:
    words = synthetic(2**20, sparsity)
    code, back = coded(codec, words, layout, Launch(80, 64))
    assert code == compress(words, codec, **REGISTRY.find(codec).STORED_AS)
    assert back == words.tobytes()


def test_the_program_tells_the_length_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zvc", "chunked", "65536", "0.5", "3:64", "2:128"]) == 0
    assert int(capsys.readouterr().out) == 65536 // 32 + 65536 // 2
    assert np.count_nonzero(synthetic(65536, 0.5)) == 8192
