"""The laws on the first random machines and traces; `make laws` checks 10,000."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.laws import laws
from tests.laws.laws import (
    BETTER,
    CAUSES,
    TOLERANCE,
    Example,
    Violation,
    cause_of,
    examples,
    law_case,
    non_monotonic,
    slowdown_of,
    unexplained,
    violations,
)
from tests.replay.random_cases import Case

QUICK, SLOW = 12, 300
SEED = 13  # of a case in which a law must fail without its mechanism


def check(seeds: range) -> None:
    broken: list[Violation] = []
    for seed in seeds:
        broken += unexplained(list(violations(seed)))
    assert not broken, "\n".join(map(str, broken))


@pytest.mark.parametrize("chunk", range(4))
def test_laws_hold(chunk: int) -> None:
    check(range(chunk * QUICK // 4, (chunk + 1) * QUICK // 4))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(6))
def test_laws_hold_on_many(chunk: int) -> None:
    check(range(chunk * SLOW // 6, (chunk + 1) * SLOW // 6))


def test_the_list_of_exceptions_says_why() -> None:
    for key, entries in non_monotonic().items():
        assert key in BETTER
        for cause, entry in entries.items():
            assert cause in CAUSES
            assert TOLERANCE < entry["largest"] < 1
            assert entry["seed"] >= 0
            assert entry["runs"] > 0


@pytest.mark.parametrize("example", examples(), ids=lambda one: f"{one.cause}-{one.resource}")
def test_a_better_resource_slows_an_example(example: Example) -> None:
    """If one is no longer slowed, the engine is better than its list."""
    assert slowdown_of(example.case, example.resource) == pytest.approx(example.slowdown, abs=2e-4)
    assert cause_of(example.case, example.resource) == example.cause


def test_each_cause_of_more_than_two_runs_has_an_example() -> None:
    """The list has a seed of the others."""
    runs: Counter[str] = Counter()
    for entries in non_monotonic().values():
        runs.update({cause: entry["runs"] for cause, entry in entries.items()})
    assert {cause for cause, count in runs.items() if count > 2} <= {one.cause for one in examples()}


def counters(seed: int) -> tuple[Case, dict[str, Any]]:
    case, _ = law_case(seed)
    with tempfile.TemporaryDirectory() as folder, laws._replaying(case, Path(folder) / "case.bin") as run:
        return case, run(case.scheme, {})


@pytest.mark.parametrize(
    "counter",
    ["l1.sector_hits", "l2.read_sector_hits", "store_sectors", "l2.dirty_sectors_at_end", "device.bus_bytes",
     "metadata.hits", "horizon.pushed"],
)  # fmt: skip
def test_bytes_that_vanish_are_found(counter: str) -> None:
    _, count = counters(SEED)
    assert not list(laws._conserved(SEED, count))
    count[counter] += 1
    assert list(laws._conserved(SEED, count))


@pytest.mark.parametrize(
    ("name", "counter"),
    [("channel", "device.channel_demand_bytes"), ("link", "link.demand_bytes"), ("slices", "l2.read_sectors"),
     ("replies", "l2.read_sectors"), ("instructions", "memory_instructions")],
)  # fmt: skip
def test_a_run_that_is_too_fast_is_found(name: str, counter: str) -> None:
    """It moves a million times as much in the same time."""
    case, count = counters(SEED)
    assert not list(laws._bound(SEED, case, count))
    count[counter] = [10**6 * one for one in count[counter]] if name == "channel" else 10**6 * count[counter]
    assert name in {one.about.split(":")[0] for one in laws._bound(SEED, case, count)}


@pytest.mark.parametrize("memory", ["link", "device"])
@pytest.mark.parametrize("kind", ["demand", "overfetch", "read_modify_write"])
def test_more_requests_in_flight_than_slots_are_found(memory: str, kind: str) -> None:
    """A thousand times as many as slots hold in the run's time at the latency of both memories, 500 ns at most."""
    case, count = counters(SEED)
    case.machine |= {"l2.writeback_buffer": 2, "dram.load_to_use": "900 ns"}
    assert not list(laws._in_flight(SEED, case, count))
    slots = case.make_machine().l2.slices * max(case.make_machine().l2.mshrs, 2)
    count[f"{memory}.{kind}_bytes"] += 128 * 1000 * slots * (1 + count["time_ps"] // 100_000)
    (broken,) = laws._in_flight(SEED, case, count)
    assert broken.about.startswith(f"{memory} {'read-modify-writes' if kind.startswith('read') else 'fills'}:")


def test_a_scheme_that_is_not_bandwidth_compression_is_found() -> None:
    """Entries that overflow."""
    case, _ = law_case(SEED)
    for fits, broken in ((laws.FITS, False), ({**laws.FITS, "2x": 7, "4x": 7, "16x": 7}, True)):
        fitting = laws._with_classes(case, fits)
        with tempfile.TemporaryDirectory() as folder, laws._replaying(fitting, Path(folder) / "case.bin") as run:
            assert bool(list(laws._fitting(SEED, run))) == broken


def test_raw_entries_that_are_fetched_whole_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case, _ = law_case(SEED)
    raw = laws._with_classes(case, {})
    monkeypatch.setitem(laws.INCOMPRESSIBLE, "compression.fetch_whole_raw_entry", True)
    with tempfile.TemporaryDirectory() as folder, laws._replaying(raw, Path(folder) / "case.bin") as run:
        broken = {one.about for one in laws._incompressible(SEED, run)}
    assert broken == {"bandwidth-compression: bytes", "bandwidth-compression: time", "buddy: bytes", "buddy: time"}


def test_a_worse_resource_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(laws.BETTER, "dram.load_to_use", 1.5)
    assert slowdown_of(law_case(SEED)[0], "dram.load_to_use") > TOLERANCE
