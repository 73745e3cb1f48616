"""Contracts of what is chosen by name in the replayed machine: what every member of a kind keeps to.

`python -m buddysim check-plugin FILE` holds a plug-in to them, and tests hold everything that ships. A kind's own
contracts lie next to its part: ``CONTRACTS`` of the module `contracts` in the folder above the kind's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from buddysim.base.boundary import inside
from buddysim.base.counter import law_holds
from buddysim.base.errors import BuddysimError
from buddysim.base.kinds import HOMES, registry
from buddysim.machine import Machine
from buddysim.machine.model import policy_keys
from buddysim.replay.counter_definitions import LAWS
from buddysim.replay.request import ReplayRequest
from buddysim.replay.schemes import DEFAULT
from buddysim.replay.simulation import simulate

SCHEME = "replay scheme"
#: Times of the simulator itself, which differ between two runs.
_MEASURED = ("speed.", "provenance")


@dataclass(frozen=True)
class Subject:
    """What is held to contracts.

    Attributes
    ----------
    kind : its kind (`buddysim.base.kinds`)
    name : its name
    machine : a machine that chooses it, or that its scheme runs on
    traces : traces to replay
    """

    kind: str
    name: str
    machine: Machine
    traces: Sequence[Path]

    @property
    def scheme(self) -> str:
        """The scheme of its replays."""
        return self.name if self.kind == SCHEME else DEFAULT

    def result(self, trace: Path) -> dict[str, Any]:
        """The result of a replay, without what is measured."""
        full = simulate(trace, self.machine, self.scheme).to_dict()
        return {key: value for key, value in full.items() if not key.startswith(_MEASURED)}


@dataclass(frozen=True)
class Contract:
    """What a member of a kind promises.

    Attributes
    ----------
    promise : in words
    breaches : yields a text for each breach that a trial finds; a member that breaks a `safe` contract is not run
    safe : the contract is what keeps the engine within its arrays
    """

    promise: str
    breaches: Callable[[Subject], Iterator[str]]
    safe: bool = False

    def tried(self, subject: Subject) -> list[str]:
        """The breaches of a subject; an error of its code is one."""
        return inside(lambda: list(self.breaches(subject)), lambda error: [f"{type(error).__name__}: {error}"])


def subject_of(kind: str, name: str, traces: Sequence[Path]) -> Subject:
    """Return a member of a kind on the first preset that it fits, the default one first.

    Raises
    ------
    BuddysimError
        where it fits none
    """
    key = next((key for key, policy_kind in policy_keys() if policy_kind == kind), None)
    misfit = ""
    for preset in (str(ReplayRequest.machine), *Machine.presets()):
        machine = Machine.load(preset)
        try:
            return Subject(kind, name, machine.with_overrides({key: name}) if key else machine, traces)
        except BuddysimError as error:
            misfit = str(error)
    raise BuddysimError(f"{kind} {name}: fits no preset, so it can't be tried: {misfit}")


def contracts_of(kind: str) -> tuple[Contract, ...]:
    """Return the contracts of a kind: its own, then those of all that takes part in a replay; none of other kinds."""
    home = HOMES[kind]
    if not home.startswith("buddysim.replay."):
        return ()
    module = f"{home.rpartition('.')[0]}.contracts"
    own: dict[str, tuple[Contract, ...]] = import_module(module).CONTRACTS if find_spec(module) else {}
    return (*own.get(kind, ()), *COMMON)


def breaches_of(subject: Subject) -> Iterator[tuple[Contract, list[str]]]:
    """Return each contract with its breaches; after a breach that would harm the engine, no further one is tried."""
    for contract in contracts_of(subject.kind):
        breaches = contract.tried(subject)
        yield contract, breaches
        if breaches and contract.safe:
            return


def _scheme_laws() -> tuple[str, ...]:
    return tuple(law for _, scheme in registry("replay scheme").items() for law in scheme.LAWS)


def _broken_laws(subject: Subject) -> Iterator[str]:
    for trace in subject.traces:
        result = subject.result(trace)
        for law in (*LAWS, *_scheme_laws()):
            if "speed." not in law and not law_holds(law, result):
                yield f"{trace.stem}: {law} does not hold"


def _changed_again(subject: Subject) -> Iterator[str]:
    for trace in subject.traces:
        yield from _differences(trace, subject.result(trace), subject.result(trace))


def _changed_in_threads(subject: Subject) -> Iterator[str]:
    """Two runs at once, of two traces, against each alone."""
    alone = [subject.result(trace) for trace in subject.traces]
    with ThreadPoolExecutor(len(subject.traces)) as pool:
        for trace, one, other in zip(subject.traces, alone, pool.map(subject.result, subject.traces), strict=True):
            yield from _differences(trace, one, other)


def _differences(trace: Path, one: dict[str, Any], other: dict[str, Any]) -> Iterator[str]:
    for key in one.keys() | other.keys():
        if one.get(key) != other.get(key):
            yield f"{trace.stem}: {key}: {one.get(key)} and {other.get(key)}"


def _undeclared(subject: Subject) -> Iterator[str]:
    declared = getattr(registry(subject.kind).find(subject.name), "COUNTERS", {})
    result = subject.result(subject.traces[0])
    for counter in declared:
        if counter not in result:
            yield f"{counter}: declared, not counted"


#: Contracts of every kind that takes part in a replay.
COMMON = (
    Contract("the laws of the counters hold", _broken_laws),
    Contract("counters that it declares are counted", _undeclared),
    Contract("two runs alike give the same result", _changed_again),
    Contract("a run next to another one gives the result that it has alone", _changed_in_threads),
)
