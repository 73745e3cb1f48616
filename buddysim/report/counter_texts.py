"""Definitions of all counters of both engines, as `explain`, `results` and the pages of docs/reference/ show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from buddysim.base.counter import Counter, unit_and_text
from buddysim.replay.counter_definitions import COUNTERS as REPLAY_COUNTERS
from buddysim.replay.counter_definitions import SOURCES
from buddysim.replay.schemes import REGISTRY
from buddysim.training.counter_definitions import COUNTERS as TRAINING_COUNTERS


@dataclass(frozen=True)
class CounterText:
    """One counter.

    Attributes
    ----------
    name : its key in results
    engine : ``replay`` or ``training``
    unit : empty if it has none
    text : its definition
    source : module that defines it
    laws : equations that it is part of
    """

    name: str
    engine: str
    unit: str
    text: str
    source: str
    laws: tuple[str, ...] = ()


def counter_texts() -> list[CounterText]:
    """Return every counter: those of replays, of training iterations, then those of single schemes."""
    return [
        *_of_engine(REPLAY_COUNTERS, "replay", SOURCES),
        *_of_engine(TRAINING_COUNTERS, "training", {}),
        *_of_schemes(),
    ]


def _of_engine(counters: dict[str, Counter], engine: str, sources: Mapping[str, str]) -> Iterator[CounterText]:
    """The counters of an engine; `sources`: modules by name, of those that are not defined with all the others."""
    for counter in counters.values():
        module = sources.get(counter.name, f"buddysim.{engine}.counter_definitions")
        source = f"{module.replace('.', '/')}.py"
        yield CounterText(counter.name, engine, counter.unit, counter.text, source, counter.laws)


def _of_schemes() -> Iterator[CounterText]:
    seen = set[str]()
    for scheme_name, scheme in REGISTRY.items():
        for name, definition in {**scheme.COUNTERS, **scheme.ENGINE_COUNTERS}.items():
            if name in seen:
                continue
            seen.add(name)
            unit, text = unit_and_text(definition)
            laws = tuple(law for law in scheme.LAWS if f"`{name}`" in law)
            yield CounterText(name, "replay", unit, text, f"the replay scheme {scheme_name}, {scheme.__module__}", laws)
