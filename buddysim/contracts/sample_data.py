"""Data on which compressors are tried, the same each time: patterns of real memory, words at the bounds of codes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WORDS = 32
_EACH = 64
#: Words where codes of 4, 8 and 16 bits end, signed and unsigned.
_BOUNDS = [0, 1, 7, 8, 127, 128, 32767, 32768, 2**31 - 1, 2**31, *(2**32 - one for one in (1, 8, 9, 128, 129, 32769))]


def entries() -> NDArray[np.uint8]:
    """Return some hundred entries of 128 B."""
    draw = np.random.default_rng(1)
    base = draw.integers(0, 2**32, (_EACH, 1))
    ramps = base + draw.integers(-(2**31), 2**31, (_EACH, 1)) * np.arange(_WORDS)
    bits = draw.integers(1, 21, (_EACH, 1))
    walks = base + np.cumsum(draw.integers(-(2**bits), 2**bits, (_EACH, _WORDS)), axis=1)
    spread = 10.0 ** draw.integers(-7, 1, (_EACH, 1))
    floats = (1000 * (1 + spread * draw.standard_normal((_EACH, _WORDS)))).astype("<f4").view("<u4")
    noise = draw.integers(0, 2**32, (_EACH, _WORDS))
    sparse = np.where(draw.random((_EACH, _WORDS)) < 0.1, noise, 0)
    repeated = np.tile(noise[:, :4], (1, _WORDS // 4))
    bounds = draw.choice(_BOUNDS, (_EACH, _WORDS))
    single = np.left_shift(1, draw.integers(0, 32, (_EACH, _WORDS))) * (draw.random((_EACH, _WORDS)) < 0.5)
    same = np.repeat(np.array([0, 1, 2**32 - 1])[:, None], _WORDS, axis=1)
    rows = np.concatenate([same, ramps, walks, floats.astype(np.int64), noise, sparse, repeated, bounds, single])
    return (rows & 0xFFFFFFFF).astype("<u4").view(np.uint8).reshape(-1)


def tensors() -> list[NDArray[np.uint8]]:
    """Return tensors of words of 4 B: of no word, of one, of more than a window, of any density, zeros in runs."""
    draw = np.random.default_rng(1)
    made = []
    for count in (0, 1, 33, 700, 1500):
        for density, run in ((0.0, 1), (0.3, 1), (0.5, 40), (0.9, 3), (1.0, 1)):
            values = draw.integers(1, 4 if run == 3 else 2**32, count)
            nonzero = np.repeat(draw.random(count // run + 1) < density, run)[:count]
            made.append((values * nonzero).astype("<u4").view(np.uint8))
    return made
