"""The engines that a sweep can run, one file each; `find` gives one by its name."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.sweep.engine_protocol import SweepEngine

NAMES = ("analysis", "replay", "training")
_loaded: dict[str, SweepEngine] = {}


def find(name: str) -> SweepEngine:
    """The engine of a name; a BuddysimError names the nearest of an unknown one."""
    if name in _loaded:
        return _loaded[name]
    if name not in NAMES:
        raise BuddysimError(f"engine {shortened(name)}: expected one of {', '.join(NAMES)}{hint(name, NAMES)}")
    _loaded[name] = cast(SweepEngine, import_module(f"buddysim.sweep.engines.{name}"))
    return _loaded[name]
