"""A network by its name or from a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_input
from buddysim.base.paths import is_file
from buddysim.training import zoo
from buddysim.training.networks.graph import Network

#: Keys of a model's configuration, and of an operator graph: one of either stands near the beginning.
_CONFIG_KEYS = (b'"architectures"', b'"model_type"')
_GRAPH_KEYS = (b'"storages"', b'"tensors"', b'"operators"')
_BEGINNING = 1 << 16
#: What model hubs call a model: ``meta-llama/Llama-3.1-8B``.
_HUB_NAME = re.compile(r"[\w-]+/(?!.*\.(toml|json)$)[\w.-]+")
_EITHER = "model configuration or operator graph"


def _is_config(path: Path) -> bool:
    """Whether a JSON file is a model's configuration and no operator graph: by its name, or by a key of either.

    Raises
    ------
    BuddysimError
        where it can't be read, or is neither
    """
    with open_input(path, _EITHER) as file:
        beginning = file.read(_BEGINNING)
    if path.name == "config.json" or any(key in beginning for key in _CONFIG_KEYS):
        return True
    if any(key in beginning for key in _GRAPH_KEYS):
        return False
    raise BuddysimError(
        f"{path}: neither a model configuration (architectures or model_type is missing) nor an operator graph "
        "(storages, tensors and operators are missing)"
    )


@within_budget
def load_network(network: str | os.PathLike[str] | Mapping[str, Any]) -> Network:
    """The network that a name or a file stands for.

    Parameters
    ----------
    network : a registered name, with settings behind a colon where it has some (``gpt2:tokens=512``), the path of a
        network file (``.toml``), of a model's configuration or of a captured operator graph (``.json``); or the content
        of such a configuration
    """
    if isinstance(network, Mapping):
        from buddysim.training.recorded_step.from_config import network_from_config

        return network_from_config(network)
    name = os.fspath(network)
    if name.endswith(".json") and _is_config(Path(name)):
        from buddysim.training.recorded_step.from_config import network_from_config

        return network_from_config(name)
    if name.endswith(".json"):
        from buddysim.training.networks.captured.network import read_operator_network

        return read_operator_network(name)
    if name.partition(":")[0] not in zoo.REGISTRY and (name.endswith(".toml") or os.sep in name or is_file(name)):
        from buddysim.training.networks.toml_reader import read_network

        if _HUB_NAME.fullmatch(name) and not os.path.lexists(name):
            raise BuddysimError(
                f"{name}: no such file: expected the name of a network (see: networks list), or the path of a file: of "
                "a model on a hub that of its config.json"
            )
        return read_network(Path(name))
    return zoo.load(name)
