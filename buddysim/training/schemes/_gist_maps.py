"""Gist's encoding of each feature map, by the layer that writes it and the layers that read it (Section III).

- ReLU-Pool: a ReLU's output that only max pools read, with windows of at most 16 elements. Their backward steps need
  the index of each window's largest element, not X and Y, so the ReLU's backward step alone reads it, bit by bit.
- ReLU/Pool-CONV: a ReLU's or a pooling layer's output that a CONV layer reads.
- Others, and the input where it is a feature map: CNTK's networks subtract a mean from the image in a layer of their
  own (its AlexNet_ImageNet.cntk, VGG16_ImageNet.cntk, InceptionV3.bs), whose output the first CONV layer reads in both
  passes. Tokens are indices and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from buddysim.gist.windows import MAX_WINDOW, positions_bytes
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.networks.kinds import rules_of

Category = Literal["relu-pool", "relu-conv", "others"]


def views(network: Network) -> frozenset[int]:
    """The layers whose output is the same bytes under another shape: they run in place under every scheme."""
    return frozenset(
        layer.index for layer in network.layers if layer.in_place and rules_of(layer).runs_in_place == "view"
    )


def relus(network: Network) -> frozenset[int]:
    """The ReLU layers that may run in place."""
    return frozenset(layer.index for layer in network.layers if layer.in_place and is_relu(layer))


def is_relu(layer: Layer) -> bool:
    """Whether a layer's backward step asks its output only where that is zero."""
    return layer.kind != "input" and rules_of(layer).reads_zeros and rules_of(layer).zeros == "makes"


def categories(network: Network) -> dict[int, Category]:
    """The category of each feature map, by the layer that owns it.

    Parameters
    ----------
    network : with the layers in place that run in place (`Network.in_place_only`)
    """
    return {owner: _category(network, owner) for owner in network.buffers if owner or _is_map(network)}


def _is_map(network: Network) -> bool:
    """Whether the input is a feature map, not tokens."""
    return not any(rules_of(layer).reads_numbers for layer in readers(network, 0))


def maker(network: Network, owner: int) -> Layer:
    """The layer whose output a buffer holds in the end, views of it left out."""
    for index in reversed(network.buffer_writers(owner)):
        layer = network.layers[index]
        if index == owner or rules_of(layer).runs_in_place != "view":
            return layer
    raise ValueError(f"layer {owner} owns no buffer")


def readers(network: Network, owner: int) -> Iterator[Layer]:
    """The layers that read a feature map."""
    for index in network.buffer_readers(owner):
        yield network.layers[index]


def pooling_index_bytes(pool: Layer, batch: int) -> int:
    """Bytes of the indices of the largest elements of a max pool's windows."""
    return positions_bytes(pool.output_elements * batch)


def _category(network: Network, owner: int) -> Category:
    made, reading = maker(network, owner), list(readers(network, owner))
    if is_relu(made) and reading and all(_has_index_encoding(layer) for layer in reading):
        return "relu-pool"
    sparse = made.kind != "input" and rules_of(made).zeros in ("makes", "pools")
    if sparse and any(layer.kind == "conv" for layer in reading):
        return "relu-conv"
    return "others"


def _has_index_encoding(layer: Layer) -> bool:
    pool = layer.pool
    return layer.kind == "maxpool" and pool is not None and pool.kernel_h * pool.kernel_w <= MAX_WINDOW
