"""Replay schemes: one file each, with its state, parameters and counters (`SchemeBase` says what it has)."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from buddysim.base.registry import Registry, name_of
from buddysim.replay.engine.scheme import SchemeBase

#: What slowdowns are measured against.
BASELINE = "ideal"
DEFAULT = "buddy"


def _scheme_of(module: ModuleType) -> Mapping[str, type[SchemeBase]]:
    scheme = getattr(module, "Scheme", None)
    if not (isinstance(scheme, type) and issubclass(scheme, SchemeBase)):
        return {}
    return {name_of(module): scheme}


REGISTRY: Registry[type[SchemeBase]] = Registry("replay scheme", __name__, ("Scheme",), _scheme_of)


def counter_names() -> tuple[str, ...]:
    """Return the counters that schemes define; each result has all of them."""
    return tuple(dict.fromkeys(name for _, scheme in REGISTRY.items() for name in scheme.COUNTERS))
