"""Pseudo-random numbers that are the same on every computer and with every version of numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def hashed(counter: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each number: the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        z = (counter + np.uint64(1)) * _GOLDEN + np.uint64(seed)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def below(counter: npt.NDArray[np.uint64], limit: int, seed: int) -> npt.NDArray[np.uint64]:
    """Return a pseudo-random number from 0 to ``limit - 1`` for each counter; limits up to 2^32."""
    return (hashed(counter, seed) >> np.uint64(32)) * np.uint64(limit) >> np.uint64(32)


def permutation(n: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the numbers 0 to ``n - 1`` in a pseudo-random order."""
    return np.argsort(hashed(np.arange(n, dtype=np.uint64), seed), kind="stable")
