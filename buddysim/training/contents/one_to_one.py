"""Contents of a network's feature maps from observations of the same network, layer by layer.

Feature maps behind ReLU and pooling layers, whose contents depend on the training, correspond in their order. The
observed network may have fewer channels and smaller images.
"""

from __future__ import annotations

from itertools import zip_longest

from buddysim.base.errors import BuddysimError
from buddysim.formats.activations import ActivationsFile
from buddysim.training.contents.dense import dense
from buddysim.training.contents.maps import Codec, FeatureMapRole, MapContents, roles, walk
from buddysim.training.contents.observed_activations import ObservedActivations, sourced_maps
from buddysim.training.networks.graph import Layer, Network


class OneToOneContents:
    """Contents of one network's feature maps, layer by layer.

    Parameters
    ----------
    measured : observations of the same layers
    network : the network

    Raises
    ------
    BuddysimError
        if the observations are of other layers; the message names the first difference
    """

    def __init__(self, measured: ObservedActivations, network: Network) -> None:
        differs = mismatch(network, measured.activations)
        if differs is not None:
            raise BuddysimError(f"{measured.activations.path}: not a measurement of {network.name}: {differs}")
        self.measured = measured
        self.description = f"{measured.description}; layer by layer"
        numbers = (number for number, _ in sourced_maps(measured.activations))
        self._numbers = dict(zip(roles(network), numbers, strict=False))  # hidden FC layers are last

    def made_by(self, codec: Codec) -> str:
        """Return the compressors behind the observations."""
        return self.measured.made_by(codec)

    def contents(self, network: Network, batch: int, codec: Codec) -> dict[int, MapContents]:
        """Return the contents of every layer's output, by layer index; the batch has no effect on fractions.

        Raises
        ------
        BuddysimError
            if a feature map has no observed density, or no size under the codec
        """
        exact = codec.from_density

        def sourced(role: FeatureMapRole, layer: Layer, before: MapContents) -> MapContents:
            seen = self.measured.observed_map(self._numbers[layer.index], codec)
            if seen is None or not (exact or codec in seen.compressed_fractions):
                what = "density" if seen is None else f"sizes for {codec}"
                raise BuddysimError(f"{self.measured.description}: feature map of {layer.name}: no {what}")
            compressed_fraction = exact(seen.density) if exact else seen.compressed_fractions[codec]
            return MapContents(seen.density, compressed_fraction, f"observed: {layer.name}")

        return walk(network, dense(codec), codec, sourced)


def mismatch(network: Network, activations: ActivationsFile, *, by_name: bool = False) -> str | None:
    """Return the first difference between the observed feature maps and a network's; None if there is none.

    Observed hidden FC layers are ignored for a network without any.

    Parameters
    ----------
    by_name : whether feature maps must have the names of the network's layers
    """
    expected = [(role.kind, network.layers[index].name) for index, role in roles(network).items()]
    observed = [(kind, activations.feature_maps[number].name) for number, kind in sourced_maps(activations)]
    if not any(kind == "fc-relu" for kind, _ in expected):
        observed = [one for one in observed if one[0] != "fc-relu"]
    for number, (network_map, observed_map) in enumerate(zip_longest(expected, observed), 1):
        if (
            network_map is None
            or observed_map is None
            or network_map[0] != observed_map[0]
            or (by_name and network_map != observed_map)
        ):
            texts = _text(observed_map), _text(network_map)
            return f"feature map {number} behind ReLU and pooling layers is {texts[0]}, expected {texts[1]}"
    return None


def _text(one: tuple[str, str] | None) -> str:
    return "missing" if one is None else f"{one[0]} {one[1]!r}"
