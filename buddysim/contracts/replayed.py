"""Contracts of everything that takes part in a replay, and those that a kind has."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import Any

from buddysim import contracts
from buddysim.base.counter import law_holds
from buddysim.base.kinds import registry
from buddysim.contracts.contract import SCHEME, Contract, Subject
from buddysim.replay.counter_definitions import LAWS


@cache
def own_contracts() -> dict[str, tuple[Contract, ...]]:
    """Return the contracts that only a kind has, by kind: of every kind that takes part in a replay."""
    names = [entry.name for entry in pkgutil.iter_modules(contracts.__path__, f"{contracts.__name__}.")]
    modules = [import_module(name) for name in names]
    return {kind: own for module in modules for kind, own in getattr(module, "CONTRACTS", {}).items()}


def breaches_of(subject: Subject) -> Iterator[tuple[Contract, list[str]]]:
    """Return each contract with its breaches; after a breach that would harm the engine, no further one is tried."""
    for contract in (*own_contracts()[subject.kind], *COMMON):
        breaches = contract.tried(subject)
        yield contract, breaches
        if breaches and contract.safe:
            return


def _broken_laws(subject: Subject) -> Iterator[str]:
    laws = [*LAWS, *(law for _, scheme in registry(SCHEME).items() for law in scheme.LAWS)]
    for trace, result in zip(subject.traces, subject.results, strict=True):
        for law in laws:
            if "speed." not in law and not law_holds(law, result):
                yield f"{trace.stem}: {law} does not hold"


def _changed_again(subject: Subject) -> Iterator[str]:
    return _changed(subject, map(subject.replay, subject.traces))


def _changed_in_threads(subject: Subject) -> Iterator[str]:
    with ThreadPoolExecutor(len(subject.traces)) as pool:
        yield from _changed(subject, pool.map(subject.replay, subject.traces))


def _changed(subject: Subject, others: Iterable[dict[str, Any]]) -> Iterator[str]:
    for trace, one, other in zip(subject.traces, subject.results, others, strict=True):
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) != other.get(key):
                yield f"{trace.stem}: {key}: {one.get(key)} and {other.get(key)}"


#: Contracts of every kind that takes part in a replay.
COMMON = (
    Contract("the laws of the counters hold", _broken_laws),
    Contract("two runs alike give the same result", _changed_again),
    Contract("a run next to another one gives the result that it has alone", _changed_in_threads),
)
