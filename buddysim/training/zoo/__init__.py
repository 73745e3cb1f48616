"""The networks that come with buddysim, one file per family, and those of plug-ins.

A family is a module with ``NETWORKS``, from each name to a function that builds the network. Adding a file here, or
giving it as a plug-in, adds its networks. Keywords of such a function that are integers or truth values are
settings, which a name may carry: ``gpt2:tokens=512,fused=true``. ``RECORDED = True`` says that its networks are made
from models' configurations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from types import ModuleType

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.registry import Registry
from buddysim.base.returned import returned
from buddysim.training.networks.graph import Network


class ZooEntry:
    """A network by its name, built at its first use; `recorded`: from a model's configuration."""

    def __init__(self, name: str, build: Callable[..., Network], recorded: bool = False) -> None:
        self.name, self.build, self.recorded = name, build, recorded

    @cached_property
    def network(self) -> Network:
        """The network."""
        return self._built()

    @property
    def settings(self) -> dict[str, int | bool]:
        """Settings by name, with their defaults."""
        parameters = inspect.signature(self.build).parameters.values()
        return {one.name: one.default for one in parameters if isinstance(one.default, int)}

    def with_settings(self, text: str) -> Network:
        """The network with some settings changed.

        Parameters
        ----------
        text : ``"tokens=512,fused=true"``

        Raises
        ------
        BuddysimError
            where a setting is unknown, or its value isn't what its default is
        """
        settings: dict[str, int | bool] = {}
        for item in text.split(","):
            name, _, value = item.partition("=")
            if name not in self.settings:
                expected = f"one of {', '.join(self.settings)}" if self.settings else "none"
                raise BuddysimError(
                    f"network {self.name}: setting {shortened(name)}: expected {expected}{hint(name, self.settings)}"
                )
            settings[name] = _value(self.name, name, value, self.settings[name])
        network = self._built(**settings)
        network.name = f"{self.name}:{text}"
        return network

    def _built(self, **settings: int | bool) -> Network:
        return returned(self.build(**settings), Network, f"network {self.name}: its function", self.build)

    @property
    def summary(self) -> str:
        """Description in a line."""
        return self.network.description


def _value(network: str, name: str, text: str, default: int | bool) -> int | bool:
    if isinstance(default, bool):
        if text in ("true", "false"):
            return text == "true"
        raise BuddysimError(f"network {network}: {name}: expected true or false, found {shortened(text)}")
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text)):
        raise BuddysimError(f"network {network}: {name}: expected an integer from 1, found {shortened(text)}")
    return int(text)


def _recipes_of(module: ModuleType) -> Mapping[str, ZooEntry]:
    listed = getattr(module, "NETWORKS", None)
    if not isinstance(listed, dict) or not all(isinstance(name, str) and callable(listed[name]) for name in listed):
        return {}
    recorded = bool(getattr(module, "RECORDED", False))
    return {name: ZooEntry(name, build, recorded) for name, build in listed.items()}


REGISTRY: Registry[ZooEntry] = Registry("network", __name__, ("NETWORKS",), _recipes_of)


def names(recorded: bool | None = None) -> tuple[str, ...]:
    """The names of all networks, in alphabetical order; of those from configurations alone, or of the others."""
    return tuple(sorted(name for name, one in REGISTRY.items() if recorded is None or one.recorded == recorded))


def load(name: str) -> Network:
    """The network of a name, with settings behind a colon; the message of an unknown one has the nearest."""
    known, colon, settings = name.partition(":")
    if colon and known in REGISTRY:
        return REGISTRY.find(known).with_settings(settings)
    if name not in REGISTRY:
        raise BuddysimError(
            f"{shortened(name)} is not a network: expected a name that `python -m buddysim networks list` prints, "
            f"or a network file ending in .toml{hint(name, names())}"
        )
    return REGISTRY.find(name).network
