"""Tensors that PyTorch's autograd saves for the backward step of a layer (2.13: `derivatives.yaml`, CUDA kernels).

It differs from what vDNN's cuDNN layers read: max pooling saves its input and the indices of the largest elements (8
bytes each) and not its output, average pooling its input, dropout a mask of a byte per element.
"""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.networks.graph import Layer, Network

_READS = {
    "avgpool": frozenset({"x", "dy"}),
    "maxpool": frozenset({"x", "dy"}),
    "lrn": frozenset({"x", "dy"}),
}
_INDEX_BYTES = 8
# local_response_norm is made of other functions; besides its input it saves the squares, the scaled mean and its power.
_LRN_MAPS = 3
# Layers whose weights are read again to compute dX; biases are not.
_READS_WEIGHTS = frozenset({"conv", "fc", "batchnorm", "layernorm", "lstm"})


@dataclass(frozen=True)
class Saved:
    """Tensors of a layer that are kept for its backward step.

    Attributes
    ----------
    reads : which of X and Y its backward step reads, and dY
    state_bytes : masks, index maps, statistics
    weight_bytes : weights, which stay on the GPU unless saved tensors are moved
    """

    reads: frozenset[str]
    state_bytes: int
    weight_bytes: int


def saved(network: Network, layer: Layer, batch: int) -> Saved:
    """The tensors of a layer that PyTorch keeps after its forward step."""
    state = layer.saved_bytes(batch)
    if layer.kind == "maxpool":
        state = layer.output_elements * batch * _INDEX_BYTES
    elif layer.kind == "lrn":
        state = _LRN_MAPS * network.output_bytes(layer.index, batch)
    weights = 0
    if layer.kind in _READS_WEIGHTS:
        weights = layer.conv.weights if layer.conv else sum(g.n * g.k for g in layer.gemms if g.weights)
        weights *= network.element_bytes
    return Saved(_READS.get(layer.kind, layer.needs), state, weights)
