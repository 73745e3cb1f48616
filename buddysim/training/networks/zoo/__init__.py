"""The networks that come with buddysim: one file per family.

A family is a module with ``NETWORKS``, from each name to what builds it. Whoever adds a file here adds its networks.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.training.networks.graph import Network


@cache
def _builders() -> dict[str, Callable[[], Network]]:
    builders: dict[str, Callable[[], Network]] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        for name, build in import_module(f"{__name__}.{module.name}").NETWORKS.items():
            if name in builders:
                raise ValueError(f"two networks of the zoo are called {name}")
            builders[name] = build
    return builders


def names() -> tuple[str, ...]:
    """The names of all networks, in alphabetical order."""
    return tuple(sorted(_builders()))


def has(name: str) -> bool:
    """Whether there is a network of this name."""
    return name in _builders()


@cache
def load(name: str) -> Network:
    """The network of a name."""
    if not has(name):
        raise BuddysimError(
            f"{shortened(name)} is not a network: expected a name that `python -m buddysim dnn list` prints, "
            f"or a network file ending in .toml{hint(name, names())}"
        )
    return _builders()[name]()
