"""Strategies for entries of 128 B: patterns of real memory, and patterns at a compressor's bounds."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

WORDS = 32
EDGES = [
    *(0, 1, 7, 8, 127, 128, 32767, 32768, 2**31 - 1, 2**31),
    *(2**32 - distance for distance in (1, 8, 9, 128, 129, 32768, 32769)),
]


def words_entry(words: NDArray[np.int64] | list[int]) -> bytes:
    """An entry of 32 words, each modulo 2^32."""
    return (np.asarray(words, dtype=np.int64) & 0xFFFFFFFF).astype("<u4").tobytes()


#: Of patterns whose words are not sampled one by one, which took longer than what the tests do with them.
seeds = st.integers(0, 2**32 - 1)
word = st.one_of(st.integers(0, 2**32 - 1), st.sampled_from(EDGES), st.integers(0, 31).map(lambda bit: 1 << bit))


@st.composite
def ramps(draw: st.DrawFn) -> bytes:
    """An arithmetic sequence of words, a few of them replaced."""
    words = draw(word) + draw(st.integers(-(2**31), 2**31)) * np.arange(WORDS)
    for _ in range(draw(st.integers(0, 3))):
        words[draw(st.integers(0, WORDS - 1))] = draw(word)
    return words_entry(words)


@st.composite
def small_deltas(draw: st.DrawFn) -> bytes:
    """A random walk with small steps."""
    bits = draw(st.integers(1, 20))
    rng = random.Random(draw(seeds))
    return words_entry(draw(word) + np.cumsum([rng.randint(-(2**bits), 2**bits) for _ in range(WORDS)]))


@st.composite
def planes(draw: st.DrawFn) -> bytes:
    """Deltas with random difference planes, so that every code and every run occurs."""
    rng = random.Random(draw(seeds))
    dbx = list[int]()
    while len(dbx) < WORDS:
        ones = [2**31 - 1, 1 << rng.randint(0, 30), 3 << rng.randint(0, 29), rng.getrandbits(31), -1]
        dbx += rng.choice([*([one] for one in ones), [0] * rng.choice([1, 2, 3, rng.randint(1, WORDS)])])
    dbx = dbx[:WORDS]
    above, deltas = 0, [0] * 31
    for plane, change in zip(range(31, -1, -1), dbx, strict=True):
        above = 0 if change == -1 else above ^ change
        for r in range(31):
            deltas[r] |= (above >> r & 1) << plane
    return words_entry(np.cumsum([draw(word), *deltas]))


floats = st.builds(
    lambda base, spread, seed: (
        (base * (1 + spread * np.random.default_rng(seed).standard_normal(WORDS))).astype("<f4").tobytes()
    ),
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, 1e-7, 1e-3, 1.0]),
    st.integers(0, 2**32 - 1),
)
sparse = st.dictionaries(st.integers(0, WORDS - 1), word, max_size=6).map(
    lambda some: words_entry([some.get(i, 0) for i in range(WORDS)])
)
repeated = st.lists(word, min_size=1, max_size=4).map(lambda some: words_entry((some * WORDS)[:WORDS]))
random_bytes = st.binary(min_size=128, max_size=128)

entry = st.one_of(ramps(), small_deltas(), planes(), floats, sparse, repeated, random_bytes)
