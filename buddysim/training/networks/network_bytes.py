"""Bytes of a network-wide allocation by kind, without workspace (vDNN, Section II-C and Fig. 2)."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.networks.graph import Network

GRADIENT_MAPS = 2  # dX and dY, each as large as the largest dY, used again by every layer


@dataclass(frozen=True)
class NetworkBytes:
    """Bytes by kind; workspace is not among them."""

    weights: int
    weight_gradients: int
    feature_maps: int
    gradient_maps: int
    saved_state: int

    @property
    def total(self) -> int:
        """The sum without saved state, which vDNN doesn't count."""
        return self.weights + self.weight_gradients + self.feature_maps + self.gradient_maps


def baseline_network_bytes(network: Network, batch: int) -> NetworkBytes:
    """Weights, their gradients, every feature map that a step reads (the input too), two gradient maps.

    The last layer's output counts where its own backward step reads it, as that of a softmax does. In-place layers
    share a feature map. Dropout masks, batch statistics and states of recurrent layers are counted as saved state.
    """
    maps = sum(network.output_bytes(owner, batch) for owner in network.feature_maps)
    largest = max(network.output_bytes(layer.index, batch) for layer in network.layers[1:])
    weights = network.parameter_bytes()
    saved = sum(layer.saved_bytes(batch) for layer in network.layers)
    return NetworkBytes(weights, weights, maps, GRADIENT_MAPS * largest, saved)
