"""The networks that come with buddysim, one file per family, and those of plug-ins.

A family is a module with ``NETWORKS``, from each name to a function that builds the network. Adding a file here, or
giving it as a plug-in, adds its networks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import ModuleType

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.registry import Registry
from buddysim.training.networks.graph import Network


class Recipe:
    """A network by its name, built when it is first asked for."""

    def __init__(self, name: str, build: Callable[[], Network]) -> None:
        self.name, self.build = name, build

    @cached_property
    def network(self) -> Network:
        """The network.

        Raises
        ------
        BuddysimError
            where the function of a plug-in builds something else
        """
        network = self.build()
        if not isinstance(network, Network):
            raise BuddysimError(f"network {self.name}: expected a Network, its function returned {shortened(network)}")
        return network

    @property
    def summary(self) -> str:
        """What it is, in a line."""
        return self.network.description


def _recipes_of(module: ModuleType) -> Mapping[str, Recipe]:
    listed = getattr(module, "NETWORKS", None)
    if not isinstance(listed, dict) or not all(isinstance(name, str) and callable(listed[name]) for name in listed):
        return {}
    return {name: Recipe(name, build) for name, build in listed.items()}


REGISTRY: Registry[Recipe] = Registry("network", __name__, ("NETWORKS",), _recipes_of)


def names() -> tuple[str, ...]:
    """The names of all networks, in alphabetical order."""
    return tuple(sorted(REGISTRY.names()))


def load(name: str) -> Network:
    """The network of a name; the message of an unknown one has the nearest."""
    if name not in REGISTRY:
        raise BuddysimError(
            f"{shortened(name)} is not a network: expected a name that `python -m buddysim dnn list` prints, "
            f"or a network file ending in .toml{hint(name, names())}"
        )
    return REGISTRY.find(name).network
