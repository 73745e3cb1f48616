"""Contents of feature maps from synthetic activations: random values, compressed.

A ReLU's feature map is zero in squares of `cluster` x `cluster` elements of a channel. A seeded generator selects the
squares so that the nonzero fraction is the density. A nonzero value is the sum of three uniform random numbers, which
is the same on every platform. A pooling layer's feature map is such a feature map, pooled by the layer's window.

At most 16 samples are generated, so that a search over batches generates them once. Large feature maps are cut to a
tile of at most 2^18 elements: first to 64 channels, then in rows and columns.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.compress.tensors import density, described, tensor_ratios
from buddysim.training.contents.dense import dense
from buddysim.training.contents.maps import Codec, FeatureMapRole, MapContents, walk
from buddysim.training.networks.graph import Layer, Network, Pooling

_TILE = 2**18
_MAX_SAMPLES = 16
_MAX_CHANNELS = 64

Shape4 = tuple[int, int, int, int]


class GeneratedContents:
    """Contents of synthetic activations with a density and a clustering.

    Parameters
    ----------
    fraction_nonzero : density behind every ReLU, 0 to 1
    cluster : edge of the squares that are zero or nonzero, in elements
    seed : seed of the random numbers

    Raises
    ------
    BuddysimError
        if a parameter is out of range
    """

    def __init__(self, fraction_nonzero: float, cluster: int = 1, seed: int = 0) -> None:
        if not 0 <= fraction_nonzero <= 1:
            raise BuddysimError(f"synthetic_density {fraction_nonzero!r}: expected a number from 0 to 1")
        if cluster < 1:
            raise BuddysimError(f"synthetic_cluster {cluster!r}: expected a number of elements from 1")
        if seed < 0:
            raise BuddysimError(f"seed {seed!r}: expected a number from 0")
        self.fraction_nonzero, self.cluster, self.seed = float(fraction_nonzero), cluster, seed
        self.description = (
            f"synthetic: density {fraction_nonzero:g} behind ReLU, zeros in squares of {cluster}, seed {seed}"
        )

    def made_by(self, codec: Codec) -> str:
        """Return the installed version of the compressor."""
        return f"buddysim.compress: {described([codec.algorithm])}"

    def contents(self, network: Network, batch: int, codec: Codec) -> dict[int, MapContents]:
        """Return the contents of every layer's output, by layer index."""

        def sourced(role: FeatureMapRole, layer: Layer, before: MapContents) -> MapContents:
            shape = _shape(batch, layer.output_shape)
            window = layer.pool if role.kind == "pool" else None
            measured_density, compressed_fraction = _measured(
                _tile(shape), window, self.fraction_nonzero, self.cluster, self.seed, codec
            )
            return MapContents(measured_density, compressed_fraction, "synthetic")

        return walk(network, dense(codec), codec, sourced)


def relu_map(shape: Shape4, fraction_nonzero: float, cluster: int = 1, seed: int = 0) -> NDArray[np.float32]:
    """Generate the feature map of a ReLU.

    The grid of squares starts at an odd offset outside the feature map, so that even pooling windows straddle squares.

    Parameters
    ----------
    shape : (N, C, H, W)
    fraction_nonzero : fraction of nonzero squares, 0 to 1; their number is rounded
    cluster : edge of a square, in elements
    seed : seed of the random numbers
    """
    rng = np.random.default_rng(seed)
    n, c, h, w = shape
    off = (cluster // 2 | 1) % cluster
    rows, columns = -(-(h + off) // cluster), -(-(w + off) // cluster)
    squares = n * c * rows * columns
    alive = np.zeros(squares, np.bool_)
    alive[: round(fraction_nonzero * squares)] = True
    grid = rng.permutation(alive).reshape(n, c, rows, columns)
    lives = grid.repeat(cluster, axis=2).repeat(cluster, axis=3)[:, :, off : off + h, off : off + w]
    values = rng.random((3, *shape), dtype=np.float32).sum(axis=0, dtype=np.float32)
    # The sum of three uniform numbers may be 0, but a nonzero element must not be.
    return np.where(lives, np.maximum(values, np.float32(2**-24)), np.float32(0))


def max_pool(tensor: NDArray[np.float32], pool: Pooling) -> NDArray[np.float32]:
    """Return the maximum of each window that lies completely within the tensor.

    Parameters
    ----------
    tensor : array (N, C, H, W)
    """
    windows = np.lib.stride_tricks.sliding_window_view(tensor, (pool.kernel_h, pool.kernel_w), axis=(2, 3))
    pooled: NDArray[np.float32] = windows[:, :, :: pool.stride_h, :: pool.stride_w].max(axis=(4, 5))
    return pooled


@lru_cache(maxsize=4096)
def _measured(
    tile: Shape4, pool: Pooling | None, fraction_nonzero: float, cluster: int, seed: int, codec: Codec
) -> tuple[float, float]:
    """Return density and compressed fraction of a tile of a feature map."""
    n, c, h, w = tile
    if pool is None:
        tensor = relu_map((n, c, h, w), fraction_nonzero, cluster, seed)
    else:
        before = (n, c, (h - 1) * pool.stride_h + pool.kernel_h, (w - 1) * pool.stride_w + pool.kernel_w)
        tensor = max_pool(relu_map(before, fraction_nonzero, cluster, seed), pool)
    (ratio,) = tensor_ratios(tensor, [codec.layout], [codec.window], [codec.algorithm])
    return density(tensor), codec.compressed_fraction(ratio)


def _shape(batch: int, output_shape: tuple[int, ...]) -> Shape4:
    c, h, w = output_shape if len(output_shape) == 3 else (math.prod(output_shape), 1, 1)
    return batch, c, h, w


def _tile(shape: Shape4) -> Shape4:
    n, c, h, w = shape
    n = min(n, _MAX_SAMPLES)
    if n * c * h * w <= _TILE:
        return n, c, h, w
    c = min(c, _MAX_CHANNELS if h * w > 1 else _TILE // n)
    side = max(1, math.isqrt(_TILE // (n * c)))
    w = min(w, max(side, _TILE // (n * c * h)))
    return n, c, min(h, max(1, _TILE // (n * c * w))), w
