"""Schemes for training with too little GPU memory, one file each; adding one is adding a file.

A scheme's file defines ``NAMES`` (the names it answers to), ``SUMMARY`` (one line by name) and
``plan(network, batch, machine, cost, name, options) -> Plan``; where it has options of its own, ``OPTIONS`` by name,
which reach it as ``Options.extra``.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened

ORDER = (
    "base-m", "base-p", "oracle", "vdnn-none-m", "vdnn-none-p", "vdnn-all-m", "vdnn-all-p", "vdnn-conv-m",
    "vdnn-conv-p", "vdnn-dyn", "cdma-zv", "cdma-rl", "cdma-zl", "cdma-bw", "save-on-cpu", "checkpoint",
)  # fmt: skip


@cache
def _found() -> dict[str, ModuleType]:
    schemes = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        for name in getattr(loaded, "NAMES", ()):
            schemes[name] = loaded
    return schemes


def names() -> tuple[str, ...]:
    """Every name that a scheme answers to: the known ones in the order of the documentation, then others by name."""
    rank = {name: position for position, name in enumerate(ORDER)}
    return tuple(sorted(_found(), key=lambda name: (rank.get(name, len(rank)), name)))


def load(name: str) -> ModuleType:
    """The file of the scheme that answers to `name`.

    Raises
    ------
    BuddysimError
        where none does; the nearest name is in the message
    """
    if name in _found():
        return _found()[name]
    raise BuddysimError(f"scheme {shortened(name)}: expected one of {', '.join(names())}{hint(name, names())}")


def option_names() -> tuple[str, ...]:
    """The options that schemes have of their own, by name (``OPTIONS`` of their files)."""
    return tuple(sorted({option for module in _found().values() for option in getattr(module, "OPTIONS", ())}))


def summary(name: str) -> str:
    """One line about the scheme that answers to `name`."""
    return str(load(name).SUMMARY[name])
