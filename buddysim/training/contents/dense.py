"""The compressed size of a feature map without zeros."""

from __future__ import annotations

from functools import cache

import numpy as np

from buddysim.compress.tensors import tensor_ratios
from buddysim.training.contents.maps import Codec, MapContents


@cache
def dense(codec: Codec) -> MapContents:
    """Return the contents of a feature map without zeros, from one compressed window of noise."""
    if codec.from_density is not None:
        return MapContents(1.0, codec.from_density(1.0), "no zeros")
    noise = np.random.default_rng(0).integers(1, 2**32, (1, codec.window // 4), dtype=np.uint32)
    (ratio,) = tensor_ratios(noise, [codec.layout], [codec.window], [codec.algorithm])
    return MapContents(1.0, codec.compressed_fraction(ratio), "no zeros")
