"""Zeros in the tensors of recorded transformers: the densities measured in small trainings, by operator.

`tools/measure_transformer_density.py` makes the table. Of what transformers save, a ReLU's results alone have zeros.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from statistics import fmean
from typing import Any

from buddysim.base.textfile import parse_toml
from buddysim.training.contents.dense import dense
from buddysim.training.contents.maps import Codec, MapContents, thinned
from buddysim.training.networks.graph import Network
from buddysim.training.networks.recorded.layer import RecordedLayer

FILE = "transformer-density.toml"


@cache
def table() -> dict[str, Any]:
    """The measured densities by model and operator, and their source."""
    path = resources.files("buddysim.training.contents") / "data" / FILE
    return parse_toml(path.read_text(encoding="utf-8"))


@cache
def density_of(operator: str) -> float:
    """Return the mean density of an operator's results over the models that have it; 1 for others."""
    models = [one for one in table().values() if isinstance(one, dict)]
    measured = [one["densities"][operator] for one in models if operator in one["densities"]]
    return fmean(measured) if measured else 1.0


class RecordedDensities:
    """Contents of the layers' outputs of a recorded network."""

    description = f"observed: {FILE} (small OPT, GPT-2 and Llama that learn text)"

    def made_by(self, codec: Codec) -> str:
        """Return what the compressed sizes come from: densities alone."""
        return f"{codec.algorithm} by density"

    def contents(self, network: Network, batch: int, codec: Codec) -> dict[int, MapContents]:
        """Return the contents of every layer's output."""
        return {layer.index: self._of(layer, codec) for layer in network.layers}

    @staticmethod
    def _of(layer: object, codec: Codec) -> MapContents:
        outputs = layer.outputs if isinstance(layer, RecordedLayer) else ()
        total = sum(size for _, size in outputs)
        density = sum(size * density_of(operator) for operator, size in outputs) / total if total else 1.0
        whole = dense(codec)
        return whole if density == 1 else thinned(codec, whole, density, "measured in small trainings")
