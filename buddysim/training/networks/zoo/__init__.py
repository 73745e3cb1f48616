"""The networks that come with buddysim, one file per family, and those of plug-ins.

A family is a module with ``NETWORKS``, from each name to a function that builds the network. Adding a file here, or
giving it as a plug-in, adds its networks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.registry import Registry
from buddysim.training.networks.graph import Network

Build = Callable[[], Network]


def _networks_of(module: ModuleType) -> Mapping[str, Build]:
    listed = getattr(module, "NETWORKS", None)
    if not isinstance(listed, dict) or not all(isinstance(name, str) and callable(listed[name]) for name in listed):
        return {}
    return listed


REGISTRY: Registry[Build] = Registry("network", __name__, ("NETWORKS",), _networks_of)


def names() -> tuple[str, ...]:
    """The names of all networks, in alphabetical order."""
    return tuple(sorted(REGISTRY.names()))


@cache
def load(name: str) -> Network:
    """The network of a name.

    Raises
    ------
    BuddysimError
        where there is none of that name, or a plug-in's function builds something else
    """
    if name not in REGISTRY:
        raise BuddysimError(
            f"{shortened(name)} is not a network: expected a name that `python -m buddysim dnn list` prints, "
            f"or a network file ending in .toml{hint(name, names())}"
        )
    network = REGISTRY.find(name)()
    if not isinstance(network, Network):
        raise BuddysimError(f"network {name}: expected its function to return a Network, found {shortened(network)}")
    return network
