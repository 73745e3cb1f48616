"""`buddysim check-plugin`: the examples keep the contracts of their kinds, and each breach gets its line."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.kinds import HOMES, registry
from buddysim.contracts import dram, link, replayed
from buddysim.contracts.contract import SCHEME, Contract, Subject, subject_of
from buddysim.contracts.replayed import COMMON, breaches_of, own_contracts
from buddysim.synthetic import make_trace

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "plugins"
POLICIES = [
    (kind, name)
    for kind, home in HOMES.items()
    if home.startswith("buddysim.replay.") and kind != SCHEME
    for name in registry(kind).names()
]


def check(file: Path, folder: Path) -> tuple[int, str, str]:
    """The exit code of `check-plugin`, and what it prints; a process of its own, as plug-ins stay loaded."""
    done = subprocess.run(
        [sys.executable, "-m", "buddysim", "check-plugin", str(file)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(("kind", "name"), POLICIES)
def test_policies_that_ship_keep_their_contracts(kind: str, name: str) -> None:
    subject = subject_of(kind, name, ())
    assert [breach for one in own_contracts()[kind] for breach in one.tried(subject)] == []


def test_every_kind_of_a_replay_says_its_contracts() -> None:
    assert set(own_contracts()) == {kind for kind, home in HOMES.items() if home.startswith("buddysim.replay.")}


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    make_trace("random", tmp_path / "random.bin", {"footprint": "1 MiB", "operations": "16"})
    return subject_of(SCHEME, "ideal", [tmp_path / "random.bin"])


ALL = (*own_contracts()[SCHEME], *COMMON)


def test_a_scheme_that_ships_keeps_them(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three replays of its trace are enough: one alone, again, in a thread."""
    replayed_traces = []
    replay = Subject.replay

    def counted(one: Subject, trace: Path) -> dict[str, Any]:
        replayed_traces.append(trace)
        return replay(one, trace)

    monkeypatch.setattr(Subject, "replay", counted)
    assert {one.promise: breaches for one, breaches in breaches_of(subject)} == {one.promise: [] for one in ALL}
    assert replayed_traces == 3 * list(subject.traces)


def test_each_contract_of_replays_finds_its_breach(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result whose counters break a law, lack a declared one, and change from run to run."""
    runs = iter(range(100))

    def replay(one: Subject, trace: Path) -> dict[str, Any]:
        return {**whole, "l2.sector_hits": -1, "time_ps": next(runs)}

    whole = subject.replay(subject.traces[0])
    del whole["um.page_faults"]
    monkeypatch.setattr(Subject, "replay", replay)
    paging = subject_of(SCHEME, "unified-memory", subject.traces)
    breaches_by_promise = {one.promise: breaches for one, breaches in breaches_of(paging)}
    assert len(breaches_by_promise) == len(ALL)
    assert all(breaches_by_promise.values())
    assert breaches_by_promise["the laws of the counters hold"][0].startswith("random: `l2.sector_hits` = ")
    assert breaches_by_promise["two runs alike give the same result"] == ["random: time_ps: 0 and 1"]
    in_threads = breaches_by_promise["a run next to another one gives the result that it has alone"]
    assert in_threads == ["random: time_ps: 0 and 2"]


def test_what_an_error_says_is_a_breach(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(one: Subject) -> Iterator[str]:
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
def test_contracts_of_device_memory(kind: str, wrong: str, said: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WrongDram, "wrong", wrong)
    monkeypatch.setattr(dram, "DramTrial", WrongDram)
    subject = subject_of(kind, registry(kind).names()[0], ())
    breaches = [one.tried(subject) for one in own_contracts()[kind]]
    assert [said is not None and said in first for first, *_ in filter(None, breaches)] == [True] * (said is not None)


@pytest.mark.parametrize(("read", "requests", "write"), [(-1, 0, 0), (0, -(2**30), 0), (0, 0, -1)])
def test_contract_of_link_protocols(read: int, requests: int, write: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def carried(numbers: object, policies: object, payloads: list[int]) -> list[tuple[int, int, int]]:
        return [(payload + read, payload + requests, payload + write) for payload in payloads]

    monkeypatch.setattr(link, "carried_bytes", carried)
    (contract,) = own_contracts()["link protocol"]
    assert contract.tried(subject_of("link protocol", "packets", ()))[0].startswith(
        "a write of 32 B: 31 B" if write else "a read" + ("'s requests of 32 B" if requests else " of 32 B: 31 B")
    )


def test_a_kind_without_contracts(tmp_path: Path) -> None:
    code, out, _ = check(EXAMPLES / "lion.py", tmp_path)
    assert (code, out) == (0, "optimizer lion: defined as its kind expects; this kind has no further contracts\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xor_all.pyx", "half_lines.pyx", "oldest.pyx", "first_touch.pyx"])
def test_examples_keep_their_contracts(name: str, tmp_path: Path) -> None:
    code, out, err = check(EXAMPLES / name, tmp_path)
    assert (code, "  broken  " in out) == (0, False), out + err


#: Of each breach: the example, what of it is replaced by what, and the promise that is then broken.
BREACHES = {
    "beyond": ("xor_all.pyx", "slices[i], rest = 0, units[i]", "slices[i], rest = 1 << bits, units[i]", "below"),
    "neighbours": ("xor_all.pyx", "slices[i], rest = 0, units[i]", "slices[i], rest = n == 1, units[i]", "one slice"),
    "busy": ("oldest.pyx", "    while not warp_can_issue(scheduler, warp, now):\n        warp += 1\n", "", "can issue"),
    "early": ("half_lines.pyx", "return l1_enter(l1, m, sm_l1, now)", "return now - 5", "before its instruction"),
}


@pytest.mark.slow
@pytest.mark.parametrize("breach", BREACHES)
def test_a_broken_plugin_is_refused_by_its_contract(breach: str, tmp_path: Path) -> None:
    example, old, new, promise = BREACHES[breach]
    text = (EXAMPLES / example).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / example).write_text(text.replace(old, new))
    code, out, err = check(tmp_path / example, tmp_path)
    assert code == 2
    assert [
        one for one in re.findall(r"^  broken  (.*(?:\n {10}.*)*)", out, re.M) if promise in " ".join(one.split())
    ] != []
    assert err.splitlines()[-1].startswith(f"buddysim: error: {tmp_path / example}: broken contracts: ")
