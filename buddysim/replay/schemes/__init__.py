"""Replay schemes: one file each, with its state, parameters and counters (`SchemeBase` says what it has)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType

from buddysim.base.registry import Registry, name_of
from buddysim.replay.component.shown import ShownRow
from buddysim.replay.schemes.base import SchemeBase

#: What slowdowns are measured against.
BASELINE = "ideal"
DEFAULT = "buddy"


def _scheme_of(module: ModuleType) -> Mapping[str, type[SchemeBase]]:
    scheme = getattr(module, "Scheme", None)
    if not (isinstance(scheme, type) and issubclass(scheme, SchemeBase)):
        return {}
    return {name_of(module): scheme}


_ALLOCATION = "per_allocation."

REGISTRY: Registry[type[SchemeBase]] = Registry("replay scheme", __name__, ("Scheme",), _scheme_of)


def counter_zeros() -> dict[str, float]:
    """Return the counters that schemes define, with the value that they have in results of other schemes."""
    return {name: _zero(text) for _, scheme in REGISTRY.items() for name, text in scheme.COUNTERS.items()}


def allocation_zeros() -> dict[str, float]:
    """Return the counters of allocations that schemes define, likewise."""
    return {
        name.removeprefix(_ALLOCATION): _zero(text)
        for _, scheme in REGISTRY.items()
        for name, text in scheme.ENGINE_COUNTERS.items()
        if name.startswith(_ALLOCATION)
    }


def _zero(definition: str) -> float:
    return 0.0 if definition.startswith("fraction:") else 0


def own_traffic() -> tuple[str, ...]:
    """Return the kinds of traffic of all schemes' own; each result has all of them."""
    return tuple(dict.fromkeys(name for _, scheme in REGISTRY.items() for name in scheme.TRAFFIC))


def own_queues() -> tuple[str, ...]:
    """Return the queues of all schemes' own; each result has all of them."""
    return tuple(dict.fromkeys(name for _, scheme in REGISTRY.items() for name in scheme.QUEUES))


def own_footprint() -> dict[str, str]:
    """Return the kinds of bytes that entries take under schemes, and the memory of each; each result has them all."""
    return {kind: memory for _, scheme in REGISTRY.items() for kind, memory in scheme.FOOTPRINT.items()}


def shown_rows(name: str | None = None) -> Iterator[ShownRow]:
    """Return the rows that schemes add to the screen of `run`, or those of one scheme.

    A scheme that isn't known, as in a stored result of a plug-in, has none.
    """
    for scheme_name, scheme in REGISTRY.items():
        if name in (None, scheme_name):
            yield from scheme.SHOWN
