"""What is held to contracts, and what a contract is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from buddysim.base.boundary import inside
from buddysim.base.errors import BuddysimError
from buddysim.base.kinds import registry
from buddysim.machine import Machine
from buddysim.machine.model import policy_keys
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.request import ReplayRequest
from buddysim.replay.schemes import DEFAULT
from buddysim.replay.simulation import simulate

SCHEME = "replay scheme"
#: Times of the simulator itself, which differ between two runs.
_MEASURED = ("speed.", "provenance")
_MAX_BREACHES = 3


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
    def member(self) -> Any:
        """The class of that name."""
        return registry(self.kind).find(self.name)

    @property
    def numbers(self) -> dict[str, object]:
        """The machine as the engine knows it."""
        return engine_numbers(self.machine, Fraction(1))

    def replay(self, trace: Path) -> dict[str, Any]:
        """The result of a replay, without what is measured."""
        full = simulate(trace, self.machine, self.name if self.kind == SCHEME else DEFAULT).to_dict()
        return {key: value for key, value in full.items() if not key.startswith(_MEASURED)}

    @cached_property
    def results(self) -> list[dict[str, Any]]:
        """The result of each trace, replayed once and alone."""
        return [self.replay(trace) for trace in self.traces]


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
        """The first breaches of a subject; an error of its code is one."""
        return inside(
            lambda: list(islice(self.breaches(subject), _MAX_BREACHES)),
            lambda error: [f"{type(error).__name__}: {error}"],
        )


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
