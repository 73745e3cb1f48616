"""Synthetic tensors: words with a fraction of zeros at random positions (CSWAP, Sec. IV-C)."""

from __future__ import annotations

import numpy as np

from buddysim.base.errors import BuddysimError
from buddysim.gpu_codecs.opencl_device import Words


def synthetic_words(byte_count: int, sparsity: float, seed: int = 0) -> Words:
    """Return normally distributed 32-bit numbers, a given fraction (rounded) of which is zero.

    Raises
    ------
    BuddysimError
        if the sparsity is outside 0 to 1
    """
    rng = np.random.default_rng(seed)
    count = byte_count // 4
    values = rng.standard_normal(count, dtype=np.float32)
    values[values == 0] = 1
    values[rng.permutation(count)[: round(sparsity * count)]] = 0
    return values.view(np.uint32)


def check_sparsity(sparsity: float) -> None:
    """Check that a sparsity is a fraction, 0 to 1.

    Raises
    ------
    BuddysimError
        if it is outside 0 to 1
    """
    if not 0 <= sparsity <= 1:
        raise BuddysimError(f"sparsity {sparsity!r}: out of range: expected a number from 0 to 1")
