"""Contents of a network's feature maps, as compression needs them: densities and compressed sizes.

An `ActivationSource` gives them for every feature map of a network. There are three sources: feature maps observed in a
training, a user's table, and synthetic activations. Schemes that compress feature maps read one of them; the options
that select it are in `activation_options`.
"""

from __future__ import annotations

from typing import Protocol

from buddysim.training.contents.maps import Codec, MapContents, mean_compressed_fraction
from buddysim.training.networks.graph import Network

__all__ = [
    "ActivationSource",
    "Codec",
    "MapContents",
    "mean_compressed_fraction",
]


class ActivationSource(Protocol):
    """Source of the contents of a network's feature maps."""

    #: Origin of the contents, a phrase for results.
    description: str

    def made_by(self, codec: Codec) -> str:
        """Return the compressors behind the compressed sizes, with versions of libraries, for results."""

    def contents(self, network: Network, batch: int, codec: Codec) -> dict[int, MapContents]:
        """Return the contents of every layer's output, by layer index.

        Parameters
        ----------
        batch : samples
        codec : compressor, layout and window of the compressed sizes
        """
