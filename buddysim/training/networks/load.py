"""A network by its name or from a file."""

from __future__ import annotations

import os
from pathlib import Path

from buddysim.training.networks import zoo
from buddysim.training.networks.graph import Network


def load_network(network: str | os.PathLike[str]) -> Network:
    """A network of the zoo by its name, one's own by the path of its TOML file, or that of a captured training."""
    name = os.fspath(network)
    if name.endswith(".json"):
        from buddysim.training.networks.from_operators import read_operator_network

        return read_operator_network(name)
    is_file = os.path.isfile(name)  # noqa: PTH113 (Path.is_file raises where a name is too long for one)
    if not zoo.has(name) and (name.endswith(".toml") or os.sep in name or is_file):
        from buddysim.training.networks.file import read_network

        return read_network(Path(name))
    return zoo.load(name)
