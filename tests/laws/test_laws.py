"""The laws on the first random machines and traces; `make laws` checks 10,000."""

from __future__ import annotations

import pytest

import buddysim
from tests.laws import laws
from tests.laws.laws import (
    BETTER,
    CAUSES,
    TOLERANCE,
    Example,
    Violation,
    cause_of,
    examples,
    non_monotonic,
    slowdown_of,
    unexplained,
    violations,
)

QUICK, SLOW = 12, 300
SEEDS = range(12)  # of machines on which a law must fail without its mechanism


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
    assert cause_of(example.case, example.resource, traffic=example.cause == "order") == example.cause


def test_each_cause_that_is_listed_has_an_example() -> None:
    listed = {cause for entries in non_monotonic().values() for cause in entries}
    assert {one.cause for one in examples()} >= listed


def broken(monkeypatch: pytest.MonkeyPatch, law: str, spoil: object) -> list[Violation]:
    """Violations of a law if each run's counters are changed by `spoil(counters, scheme)`."""
    simulate = buddysim.simulate

    class Spoilt:
        def __init__(self, result: buddysim.ReplayResult, scheme: str) -> None:
            self.counters, self.per_kernel = dict(result.counters), result.per_kernel
            spoil(self.counters, scheme)  # type: ignore[operator]

    monkeypatch.setattr(
        laws.buddysim,
        "simulate",
        lambda trace, machine, scheme, *rest, **options: Spoilt(
            simulate(trace, machine, scheme, *rest, **options), scheme
        ),
    )
    return [one for seed in SEEDS for one in violations(seed) if one.law == law]


@pytest.mark.parametrize(
    "counter",
    ["l1.sector_hits", "l2.read_sector_hits", "store_sectors", "l2.dirty_sectors_at_end", "device.bus_bytes",
     "metadata.hits", "horizon.pushed"],
)  # fmt: skip
def test_bytes_that_vanish_are_found(monkeypatch: pytest.MonkeyPatch, counter: str) -> None:
    def spoil(count: dict[str, int], scheme: str) -> None:
        count[counter] += 1

    assert broken(monkeypatch, "conserved", spoil)


def test_a_run_that_is_too_fast_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(count: dict[str, int], scheme: str) -> None:
        count["time_ps"] //= 50

    found = {one.about.split(":")[0] for one in broken(monkeypatch, "bound", spoil)}
    assert found >= {"channel", "link", "slices", "replies"}


def test_a_scheme_that_is_not_bandwidth_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that overflow."""
    monkeypatch.setitem(laws.FITS, "4x", laws.LARGEST)
    monkeypatch.setitem(laws.FITS, "2x", laws.LARGEST)
    assert [one for seed in SEEDS for one in violations(seed) if one.law == "fitting"]


def test_raw_entries_that_are_fetched_whole_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(laws.INCOMPRESSIBLE, "compression.fetch_whole_raw_entry", True)
    found = {one.about for seed in SEEDS for one in violations(seed) if one.law == "incompressible"}
    assert found >= {"bandwidth-compression: bytes", "bandwidth-compression: time", "buddy: bytes", "buddy: time"}


def test_a_worse_resource_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("l1.load_to_use", "dram.load_to_use", "link.load_to_use", "l2.atomic_interval"):
        monkeypatch.setitem(laws.BETTER, key, 1.5)
    assert len([one for seed in SEEDS for one in violations(seed) if one.law == "better"]) > 2
