"""A network by its name or from a file."""

from __future__ import annotations

import os
import re
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.paths import is_file
from buddysim.training import zoo
from buddysim.training.networks.graph import Network

#: Keys of a model's configuration, and of an operator graph: one of either stands near the beginning.
_KEYS = (b'"architectures"', b'"model_type"')
_GRAPH_KEYS = (b'"storages"', b'"tensors"', b'"operators"', b'"format"')
_BEGINNING = 1 << 16
#: What model hubs call a model: ``meta-llama/Llama-3.1-8B``.
_HUB_NAME = re.compile(r"[\w-]+/(?!.*\.(toml|json)$)[\w.-]+")


def _is_config(path: Path) -> bool:
    """Whether a JSON file is a model's configuration: by its name or a key, or as an object without a graph's keys."""
    if path.name == "config.json":
        return True
    if not is_file(path):
        return False  # a pipe would not end
    try:
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING)
    except OSError:
        return False  # the reader of graphs says what is wrong
    graph = any(key in beginning for key in _GRAPH_KEYS)
    return any(key in beginning for key in _KEYS) or (beginning.lstrip()[:1] == b"{" and not graph)


def load_network(network: str | os.PathLike[str]) -> Network:
    """The network that a name or a file stands for.

    Parameters
    ----------
    network : a registered name, with settings behind a colon where it has some (``gpt2:tokens=512``), the path of a
        network file (``.toml``), of a model's configuration or of a captured operator graph (``.json``)
    """
    name = os.fspath(network)
    if name.endswith(".json") and _is_config(Path(name)):
        from buddysim.training.recorded_step.from_config import network_from_config

        return network_from_config(name)
    if name.endswith(".json"):
        from buddysim.training.networks.captured.network import read_operator_network

        return read_operator_network(name)
    is_file = os.path.isfile(name)  # noqa: PTH113 (Path.is_file raises where a name is too long for one)
    if name.partition(":")[0] not in zoo.REGISTRY and (name.endswith(".toml") or os.sep in name or is_file):
        from buddysim.training.networks.toml_reader import read_network

        if _HUB_NAME.fullmatch(name) and not os.path.lexists(name):
            raise BuddysimError(
                f"{name}: no such file: expected the name of a network (see: networks list), or the path of a file: of "
                "a model on a hub that of its config.json"
            )
        return read_network(Path(name))
    return zoo.load(name)
