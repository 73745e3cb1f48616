"""Contents of a network's feature maps, as compression needs them: densities and compressed sizes.

An `ActivationSource` gives them for every feature map of a network: from feature maps observed while a network was
trained, from the user's table, or from generated activations. Schemes that compress feature maps take them from it;
`activation_options` has the options that choose one.
"""

from __future__ import annotations

from typing import Protocol

from buddysim.training.contents.density_table import TableContents
from buddysim.training.contents.depth_mapping import DepthMappedContents, ObservedMap
from buddysim.training.contents.generated import GeneratedContents
from buddysim.training.contents.maps import Codec, MapContents, mean_compressed_fraction
from buddysim.training.networks.graph import Network

__all__ = [
    "ActivationSource",
    "Codec",
    "DepthMappedContents",
    "GeneratedContents",
    "MapContents",
    "ObservedMap",
    "TableContents",
    "mean_compressed_fraction",
]


class ActivationSource(Protocol):
    """Gives the contents of a network's feature maps."""

    #: Where it comes from, for results.
    description: str

    def made_by(self, codec: Codec) -> str:
        """The compressors that the compressed sizes come from, with versions of libraries, for results."""

    def contents(self, network: Network, batch: int, codec: Codec) -> dict[int, MapContents]:
        """The contents of every layer's output, compressed by `codec`."""
