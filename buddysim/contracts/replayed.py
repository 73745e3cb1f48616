"""What takes part in a replay, and the contracts of all of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from buddysim.base.counter import law_holds
from buddysim.base.errors import BuddysimError
from buddysim.base.kinds import registry
from buddysim.contracts.contract import Contract, Subject
from buddysim.machine import Machine
from buddysim.machine.model import policy_keys
from buddysim.replay.counter_definitions import LAWS
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.request import ReplayRequest
from buddysim.replay.schemes import DEFAULT
from buddysim.replay.simulation import simulate
from buddysim.synthetic import make_trace

SCHEME = "replay scheme"
#: Workloads whose traces are replayed: reads without order, and writes of compressible data that evict.
TRIALS = {
    "random": {"footprint": "16 MiB", "operations": "2000"},
    "stream": {"footprint": "4 MiB", "op": "copy", "sizes": "32 B:3, 128 B:1"},
}


@dataclass(frozen=True)
class ReplayedSubject(Subject):
    """A scheme or a policy, to be replayed.

    Attributes
    ----------
    machine : a machine that chooses it, or that its scheme runs on
    """

    machine: Machine

    @property
    def numbers(self) -> dict[str, object]:
        """The machine as the engine knows it."""
        return engine_numbers(self.machine, Fraction(1))

    @cached_property
    def traces(self) -> list[Path]:
        """The traces of `TRIALS`, made once in a folder."""
        paths = [self.folder / f"{name}.bin" for name in TRIALS]
        for path in paths:
            if not path.exists():
                make_trace(path.stem, path, TRIALS[path.stem])
        return paths

    def replay(self, trace: Path) -> dict[str, Any]:
        """The result of a replay, without what is measured."""
        full = simulate(trace, self.machine, self.name if self.kind == SCHEME else DEFAULT).to_dict()
        return {key: value for key, value in full.items() if key != "provenance"}

    @cached_property
    def results(self) -> list[dict[str, Any]]:
        """The result of each trace, replayed once and alone."""
        return [self.replay(trace) for trace in self.traces]


def replayed_subject(kind: str, name: str, folder: Path) -> ReplayedSubject:
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
            return ReplayedSubject(kind, name, folder, machine.with_overrides({key: name}) if key else machine)
        except BuddysimError as error:
            misfit = str(error)
    raise BuddysimError(f"{kind} {name}: fits no preset, so it can't be tried: {misfit}")


def _broken_laws(subject: ReplayedSubject) -> Iterator[str]:
    laws = [*LAWS, *(law for _, scheme in registry(SCHEME).items() for law in scheme.LAWS)]
    for trace, result in zip(subject.traces, subject.results, strict=True):
        for law in laws:
            if not law_holds(law, result):
                yield f"{trace.stem}: {law} does not hold"


def _changed_again(subject: ReplayedSubject) -> Iterator[str]:
    return _changed(subject, map(subject.replay, subject.traces))


def _changed_in_threads(subject: ReplayedSubject) -> Iterator[str]:
    with ThreadPoolExecutor(len(subject.traces)) as pool:
        yield from _changed(subject, pool.map(subject.replay, subject.traces))


def _changed(subject: ReplayedSubject, others: Iterable[dict[str, Any]]) -> Iterator[str]:
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
