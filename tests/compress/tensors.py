"""Tensors for the tests of tensor compressors: words of several sizes; zeros only, in runs and everywhere."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray


@st.composite
def words(draw: st.DrawFn, bits: int = 32, most: int = 700) -> bytes:
    """Little-endian words of `bits`, of any density, the zeros in runs of any mean length."""
    count = draw(st.integers(0, most))
    density = draw(st.sampled_from([0.0, 0.02, 0.3, 0.5, 0.9, 1.0]))
    run = draw(st.sampled_from([1, 3, 40, 300]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.integers(1, 4 if draw(st.booleans()) else 2**bits, count, dtype=np.uint64)
    nonzero = np.repeat(rng.random(count // run + 1) < density, run)[:count]
    return (values * nonzero).astype(f"<u{bits // 8}").tobytes()


def relu_map(shape: tuple[int, int, int, int], density: float, seed: int) -> NDArray[np.float32]:
    """Positive numbers and zeros, with the given density."""
    rng = np.random.default_rng(seed)
    return (np.abs(rng.standard_normal(shape)) * (rng.random(shape) < density)).astype(np.float32)
