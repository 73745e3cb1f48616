"""What a network's feature maps hold, as far as compressing them goes: densities, and sizes of their codes.

A source (`Source`) says it for every map of a network: observed while a network was trained, the user's table, or
generated activations. CDMA asks it, and whatever else compresses maps.
"""

from __future__ import annotations

from typing import Protocol

from buddysim.training.contents.generated import GeneratedContents
from buddysim.training.contents.maps import Codec, MapContents, average_share
from buddysim.training.contents.observed import Observed, ObservedContents
from buddysim.training.contents.table import TableContents
from buddysim.training.networks.graph import Network

__all__ = [
    "Codec",
    "GeneratedContents",
    "MapContents",
    "Observed",
    "ObservedContents",
    "Source",
    "TableContents",
    "average_share",
]


class Source(Protocol):
    """Says what the maps of a network hold."""

    #: Where it comes from, for results.
    description: str
    #: What made the sizes of its codes, with the versions of libraries.
    compressors: str

    def contents(self, network: Network, batch: int, codec: Codec) -> dict[int, MapContents]:
        """The contents of every layer's output, compressed by `codec`."""
