"""Contracts of what takes part in a replay: members that ship keep them, and each finds its breach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.kinds import HOMES, registry
from buddysim.contracts import dram, link, replayed
from buddysim.contracts.contract import Contract
from buddysim.contracts.held import breaches_of, contracts_of, subject_of
from buddysim.contracts.replayed import COMMON, SCHEME, ReplayedSubject

POLICIES = [
    (kind, name)
    for kind, home in HOMES.items()
    if home.startswith("buddysim.replay.") and kind != SCHEME
    for name in registry(kind).names()
]


def own(kind: str) -> list[Contract]:
    """The contracts that only a kind has."""
    return [one for one in contracts_of(kind) if one not in COMMON]


@pytest.mark.parametrize(("kind", "name"), POLICIES)
def test_policies_that_ship_keep_their_contracts(kind: str, name: str, tmp_path: Path) -> None:
    subject = subject_of(kind, name, tmp_path)
    assert [breach for one in own(kind) for breach in one.tried(subject)] == []


@pytest.fixture
def subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReplayedSubject:
    monkeypatch.setattr(replayed, "TRIALS", {"random": {"footprint": "1 MiB", "operations": "16"}})
    subject = subject_of(SCHEME, "ideal", tmp_path)
    assert isinstance(subject, ReplayedSubject)
    return subject


def test_a_scheme_that_ships_keeps_them(subject: ReplayedSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three replays of its trace are enough: one alone, again, in a thread."""
    replayed_traces = []
    replay = ReplayedSubject.replay

    def counted(one: ReplayedSubject, trace: Path) -> dict[str, Any]:
        replayed_traces.append(trace)
        return replay(one, trace)

    monkeypatch.setattr(ReplayedSubject, "replay", counted)
    assert {one.promise: breaches for one, breaches in breaches_of(subject)} == {
        one.promise: [] for one in contracts_of(SCHEME)
    }
    assert replayed_traces == 3 * list(subject.traces)


def test_each_contract_of_replays_finds_its_breach(subject: ReplayedSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result whose counters break a law, and change from run to run."""
    runs = iter(range(100))

    def replay(one: ReplayedSubject, trace: Path) -> dict[str, Any]:
        wrong = {"l2.sector_hits": -1, "l2.fills": -1, "latency.l2_miss_histogram": [1, 0]}
        return {**whole, **wrong, "time_ps": next(runs)}

    whole = subject.replay(subject.traces[0])
    monkeypatch.setattr(ReplayedSubject, "replay", replay)
    paging = subject_of(SCHEME, "unified-memory", subject.folder)
    breaches_by_promise = {one.promise: breaches for one, breaches in breaches_of(paging)}
    assert len(breaches_by_promise) == len(contracts_of(SCHEME))
    assert all(breaches_by_promise.values())
    assert breaches_by_promise["the laws of the counters hold"][0].startswith("random: `l2.sector_hits` = ")
    assert breaches_by_promise["two runs alike give the same result"] == ["random: time_ps: 0 and 1"]
    in_threads = breaches_by_promise["a run next to another one gives the result that it has alone"]
    assert in_threads == ["random: time_ps: 0 and 2"]


def test_a_counter_that_is_declared_is_counted(subject: ReplayedSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(subject.member.COUNTERS, "mine.never", "count: never counted")
    breaches = [breaches for _, breaches in breaches_of(subject)]
    assert all("counters returned no mine.never, which COUNTERS declares" in first for first, *_ in breaches)


def test_what_an_error_says_is_a_breach(subject: ReplayedSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(one: ReplayedSubject) -> Iterator[str]:
        raise ValueError("no table")

    monkeypatch.setattr(replayed, "COMMON", (Contract("it runs", fail),))
    assert [breaches for _, breaches in breaches_of(subject)][-1] == ["ValueError: no table"]


class WrongDram:
    """Device memory that breaks one promise of its policies."""

    wrong = ""

    def __init__(self, numbers: object, policies: object) -> None:
        pass

    def read(self, bank: int, row: int, bursts: int, t: int) -> tuple[int, int, int]:
        return t + (8 if self.wrong == "dry run" else 9), t + 9, t + (10 if self.wrong == "early read" else 9)

    def write(self, bank: int, row: int, bursts: int, t: int) -> tuple[int, int, int]:
        return t - (self.wrong == "early write"), 4 + (self.wrong == "overfull"), 4

    def refresh_began(self, bank: int, t: int) -> tuple[int, int]:
        return t + (self.wrong == "late") - (20 if self.wrong == "long ago" else 0), 10

    def read_slot(self, bank: int, slot: int) -> int:
        return slot - (self.wrong == "early slot")


@pytest.mark.parametrize(
    ("kind", "wrong", "said"),
    [
        ("DRAM model", "", None),
        ("DRAM model", "early read", "on idle memory at"),
        ("DRAM model", "dry run", "its dry run at"),
        ("DRAM model", "early write", "is accepted at"),
        ("write drain", "", None),
        ("write drain", "overfull", "5 bursts are queued, the queue holds 4"),
        ("write drain", "early slot", "gets slot -1, before 0"),
        ("DRAM refresh", "", None),
        ("DRAM refresh", "late", "its last refresh began at"),
        ("DRAM refresh", "long ago", "its last refresh began at"),
    ],
)
def test_contracts_of_device_memory(
    kind: str, wrong: str, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WrongDram, "wrong", wrong)
    monkeypatch.setattr(dram, "DramTrial", WrongDram)
    subject = subject_of(kind, registry(kind).names()[0], tmp_path)
    breaches = [one.tried(subject) for one in own(kind)]
    assert [said is not None and said in first for first, *_ in filter(None, breaches)] == [True] * (said is not None)


@pytest.mark.parametrize(
    ("less", "said"),
    [
        ((1, 0, 0, 0), "a read of 32 B: 31 B"),
        ((0, 1, 0, 0), "a read's requests of 32 B: -1 B"),
        ((0, 0, 1, 0), "a write of 32 B: 31 B"),
        ((0, 0, 0, 1), "a write's acknowledgements of 32 B: -1 B"),
    ],
)
def test_contract_of_link_protocols(
    less: tuple[int, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def carried(numbers: object, policies: object, payloads: list[int]) -> list[tuple[int, ...]]:
        return [(payload - less[0], -less[1], payload - less[2], -less[3]) for payload in payloads]

    monkeypatch.setattr(link, "carried_bytes", carried)
    (contract,) = own("link protocol")
    assert contract.tried(subject_of("link protocol", "packets", tmp_path))[0].startswith(said)
