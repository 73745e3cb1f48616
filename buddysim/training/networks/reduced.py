"""A network of fewer channels for smaller images: the same layers under the same names, for trainings on a CPU."""

from __future__ import annotations

from typing import Any

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Layer, Network

#: Attributes that count channels or features, by kind.
_WIDTHS = {"conv": "channels", "shortcut": "channels", "fc": "features"}


def reduced(network: Network, width: float, size: int, classes: int) -> Network:
    """Return the network with narrower layers.

    Parameters
    ----------
    width : channels and features relative to the original's: multiples of 4, at least 8
    size : pixels along an edge of an image
    classes : outputs of the last CONV or FC layer, which scores them
    """
    net = NetworkBuilder(network.name, (network.input_shape[0], size, size), network.source, network.description)
    scores = max(layer.index for layer in network.layers if layer.kind in ("conv", "fc"))
    for layer in network.layers[1:]:
        attributes: dict[str, Any] = dict(layer.attributes)
        counted = _WIDTHS.get(layer.kind)
        if counted is not None:
            attributes[counted] = classes if layer.index == scores else _narrower(attributes[counted], width)
        if _depthwise(layer):
            attributes["groups"] = net.shape(layer.inputs[0])[0]
        net.add_described(layer.kind, layer.name, layer.inputs, None, True, attributes)
    return net.build()


def _narrower(channels: int, width: float) -> int:
    return max(8, round(channels * width / 4) * 4)


def _depthwise(layer: Layer) -> bool:
    return layer.conv is not None and layer.conv.groups == layer.conv.in_channels > 1
