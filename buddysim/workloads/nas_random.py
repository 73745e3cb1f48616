"""The NAS Parallel Benchmarks' random numbers: x' = a x mod 2^46 (NAS report RNR-94-007, section 2.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MULTIPLIER = 5**13
SEED = 314159265
_MASK = (1 << 46) - 1


def stream(seed: int, count: int, multiplier: int = MULTIPLIER) -> NDArray[np.float64]:
    """Return the next `count` random numbers after a seed, in (0, 1)."""
    # Products wrap modulo 2^64, which leaves them right modulo 2^46.
    powers = np.empty(count, np.uint64)
    mask = np.uint64(_MASK)
    if count:
        powers[0] = seed * multiplier & _MASK
    have = min(count, 1)
    while have < count:
        more = min(have, count - have)
        powers[have : have + more] = powers[:more] * np.uint64(pow(multiplier, have, _MASK + 1)) & mask
        have += more
    return powers / np.float64(1 << 46)
