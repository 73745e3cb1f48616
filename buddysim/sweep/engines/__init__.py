"""The engines that a sweep can run, one file each; `find` gives one by its name."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.sweep.engine import Engine

NAMES = ("analysis", "replay", "training")
_found: dict[str, Engine] = {}


def find(name: str) -> Engine:
    """The engine of a name; a BuddysimError names the nearest of an unknown one."""
    if name in _found:
        return _found[name]
    if name not in NAMES:
        raise BuddysimError(f"engine {shortened(name)}: expected one of {', '.join(NAMES)}{hint(name, NAMES)}")
    _found[name] = cast(Engine, import_module(f"buddysim.sweep.engines.{name}"))
    return _found[name]
