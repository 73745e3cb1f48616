"""Perturbed runs: their changes, the effect of each change, and the ranges that result."""

from __future__ import annotations

import math
import random
import threading
from fractions import Fraction
from pathlib import Path

import pytest

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine
from buddysim.replay.result import ReplayResult
from buddysim.replay.sensitivity import (
    DOUBLE,
    HALF,
    MAX_INSTRUCTIONS,
    MAX_RUNS,
    NO_DIFFERENCE,
    UNCHANGED,
    Perturbation,
    SensitivityRuns,
    plan_runs,
    prediction_range,
    run_all,
    tells_no_difference,
)

UP, DOWN = Fraction(41, 40), Fraction(39, 40)
PARTS = ("l1", "l2", "dram", "link")


#: Compute gaps assumed, no values: everything is changed.
UNTIMED = Path(__file__).parents[2] / "traces" / "backprop16k.bin"


def planned(
    requested: str = "all", instructions: int = 10, assumed_gaps: bool = False, synthetic_sizes: bool = True
) -> SensitivityRuns:
    return plan_runs(requested, instructions=instructions, assumed_gaps=assumed_gaps, synthetic_sizes=synthetic_sizes)


def test_eight_runs_change_everything_within_the_step() -> None:
    small = planned().small
    assert len(small) == MAX_RUNS == 8
    columns = [*zip(*(change.latencies for change in small), strict=True), tuple(change.gaps for change in small)]
    for column in columns:
        assert all(0 < abs(factor - 1) <= Fraction(1, 40) for factor in column)
        assert len(set(column)) == 8
        assert min(column) < 1 < max(column)
    assert len({change.seed for change in small}) == 8
    assert all(change.seed > 0 for change in small)


def test_the_range_has_the_next_change_in_92_of_100_cases() -> None:
    """Of ratios whose logarithms are normal after eight changes; after six in 86 to 89."""
    draw = random.Random(1)
    for count, least, most in ((8, 0.91, 0.935), (6, 0.86, 0.89)):
        inside = 0
        for _ in range(4000):
            ratios = [math.exp(draw.gauss(0.1, 0.03)) for _ in range(count + 2)]
            low, high = prediction_range(ratios[0], ratios[1:-1])
            inside += low <= ratios[-1] <= high
        assert least < inside / 4000 < most, count


def test_the_range_of_ratios_that_jump_between_two_values_is_little_wider_than_their_distance() -> None:
    low, high = prediction_range(1.0, [1.0] * 4 + [1.1] * 4)
    assert math.log(high / low) / math.log(1.1) == pytest.approx(1.38)
    assert high / 1.1 == pytest.approx(1 / low), "as much at both ends"
    low, high = prediction_range(1.0, [1.0] * 7 + [1.1])
    assert math.log(high / low) / math.log(1.1) == pytest.approx(1.38)


def test_a_range_contains_all_runs() -> None:
    assert prediction_range(1.5, [1.0] * 8)[1] >= 1.5
    assert prediction_range(1.5, []) == (1.5, 1.5)
    assert prediction_range(0.3, [0.3] * 8) == (0.3, 0.3)
    draw = random.Random(2)
    for _ in range(100):
        ratios = [draw.choice([1, 1.1, draw.uniform(0.5, 2)]) for _ in range(9)]
        low, high = prediction_range(ratios[0], ratios[1:])
        assert low <= min(ratios) <= max(ratios) <= high


@pytest.mark.parametrize(
    ("low", "high", "tells"),
    [(0.9, 1.1, True), (1, 1, True), (1.01, 1.1, False), (0.9, 0.99, False), (None, None, False)],
)
def test_a_range_that_contains_1_tells_no_difference(low: float | None, high: float | None, tells: bool) -> None:
    assert tells_no_difference({"slowdown.min": low, "slowdown.max": high}) == tells
    assert NO_DIFFERENCE == "no difference that this trace can tell"


def test_assumed_gaps_take_two_of_the_eight() -> None:
    planned_runs = planned(assumed_gaps=True)
    assert [change.gaps for change in planned_runs.gaps] == [HALF, DOUBLE]
    assert all(change.latencies == UNCHANGED.latencies and change.seed == 0 for change in planned_runs.gaps)
    assert len(planned_runs.changes) == MAX_RUNS
    assert planned_runs.changes == (*planned_runs.small, *planned_runs.gaps)


@pytest.mark.parametrize(
    ("requested", "runs"),
    [
        ("latency", 8),
        ("compute-gaps", 8),
        ("seed", 8),
        ("compute-gaps,latency", 8),
        (" seed , compute-gaps", 8),
        ("none", 0),
    ],
)
def test_some_kinds_alone(requested: str, runs: int) -> None:
    small = planned(requested).small
    assert len(small) == runs
    assert any(change.latencies != UNCHANGED.latencies for change in small) == ("latency" in requested)
    assert any(change.gaps != 1 for change in small) == ("compute-gaps" in requested)
    assert any(change.seed for change in small) == ("seed" in requested)
    assert UNCHANGED not in small


def test_seeds_change_only_where_sizes_are_synthetic() -> None:
    assert {change.seed for change in planned(synthetic_sizes=False).small} == {0}
    assert planned("seed", synthetic_sizes=False).changes == ()


def test_long_runs_have_no_ranges_unless_requested() -> None:
    assert planned("auto", MAX_INSTRUCTIONS).changes == planned("all").changes
    assert planned("auto", MAX_INSTRUCTIONS + 1).changes == ()
    assert planned("all", MAX_INSTRUCTIONS + 1).changes == planned("all").changes


@pytest.mark.parametrize("requested", ["some", "latency,gap", "", "none,compute-gaps", True, None])
def test_unknown_words_are_refused(requested: str) -> None:
    with pytest.raises(
        BuddysimError, match=r"^sensitivity .*: expected none, auto, all, or some of latency, compute-gaps, seed"
    ):
        planned(requested)


def test_a_change_scales_each_latency_of_the_machine() -> None:
    machine = Machine.load("p100-nvlink2")
    for number, part in enumerate(PARTS):
        factors = tuple(UP if other == number else Fraction(1) for other in range(4))
        changed = Perturbation(factors).of(machine)
        for other in PARTS:
            times = (machine.exact_ps(getattr(m, other).load_to_use) for m in (machine, changed))
            before, after = times
            assert after / before == (UP if other == part else 1)
    assert UNCHANGED.of(machine) is machine


def test_a_shorter_latency_still_contains_what_it_contains() -> None:
    """Every latency has its smallest possible value, so that a shorter one is limited by what it contains."""
    machine = Machine.load("p100-nvlink2").with_overrides({"l1.load_to_use": "180 ns", "l2.load_to_use": "180 ns"})
    least = 180_000 + machine.first_data_ps
    machine = machine.with_overrides({"dram.load_to_use": f"{-(-least // 1)} ps", "link.load_to_use": "180 ns"})
    for change in planned().small:
        changed = change.of(machine)
        l1, l2, dram, link = (changed.exact_ps(getattr(changed, part).load_to_use) for part in PARTS)
        assert 0 <= l1 - 180_000 * change.latencies[0] < 1
        assert 0 <= l2 - max(l1, 180_000 * change.latencies[1]) < 1
        assert dram >= l2 + machine.first_data_ps
        assert 0 <= link - max(l2, 180_000 * change.latencies[3]) < 1


def settings_of(run: dict[str, object]) -> dict[str, str]:
    assert isinstance(run["settings"], dict)
    return run["settings"]


@pytest.mark.parametrize("scheme", ["buddy", "ideal"])
def test_changed_runs_are_those_that_their_provenance_makes_again(scheme: str) -> None:
    result = buddysim.simulate(UNTIMED, scheme=scheme, sensitivity="all", seed=2**64 - 2, compute_gap_scale=0.5)
    described = result.provenance["sensitivity"]
    assert described["requested"] == "all"
    assert described["kinds"] == ["latency", "compute-gaps", "seed"]
    assert len(described["runs"]) == 8
    machine = Machine.load("p100-nvlink2")
    again = [
        buddysim.simulate(
            UNTIMED,
            machine.with_overrides(settings_of(run)),
            scheme,
            seed=run["seed"],
            compute_gap_scale=Fraction(run["compute_gap_scale"]),
        )
        for run in described["runs"]
    ]
    times = [one.counters["time_ps"] for one in again]
    assert times == [
        *result.sensitivity["time_ps"],
        *(result.sensitivity[f"{n}_compute_gaps_time_ps"] for n in ("half", "double")),
    ]
    ratios = [one.counters["compression.ratio"] for one in again]
    assert ratios[:6] == result.sensitivity["compression_ratio"]
    added = [change.seed for change in planned(assumed_gaps=True).changes]
    assert added[-2:] == [0, 0]
    assert [run["seed"] for run in described["runs"]] == [(2**64 - 2 + seed) % 2**64 for seed in added]
    assert [run["compute_gap_scale"] for run in described["runs"]][-2:] == ["1/4", "1"]
    plain = buddysim.simulate(UNTIMED, scheme=scheme, seed=2**64 - 2, compute_gap_scale=0.5)
    assert plain.counters == result.counters
    assert plain.sensitivity["time_ps"] == []
    assert plain.provenance["sensitivity"] == {"requested": "none", "kinds": [], "runs": []}


@pytest.mark.parametrize("kind", ["latency", "compute-gaps", "seed"])
def test_each_kind_moves_the_result(kind: str) -> None:
    result = buddysim.simulate(UNTIMED, sensitivity=kind)
    assert len({*result.sensitivity["time_ps"], result.counters["time_ps"]}) > 2
    moved = set(result.sensitivity["compression_ratio"]) != {result.counters["compression.ratio"]}
    assert moved == (kind == "seed")


def test_given_targets_stay_when_seeds_change() -> None:
    with buddysim.open_trace(UNTIMED) as trace:
        result = buddysim.simulate(trace, targets=buddysim.Targets.uniform(trace, "2x"), sensitivity="seed")
    assert set(result.sensitivity["compression_ratio"]) == {2.0}
    assert len(set(result.sensitivity["time_ps"])) > 1


def test_progress_counts_all_runs() -> None:
    reports: list[tuple[int, int]] = []
    result = buddysim.simulate(
        UNTIMED, sensitivity="latency", progress=lambda done, total: reports.append((done, total))
    )
    total = 9 * result.counters["memory_instructions"]
    assert reports[-1] == (total, total)
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)


def result(scheme: str, time_ps: int) -> ReplayResult:
    counters = {"time_ps": time_ps, "memory_instructions": 10, "compression.ratio": 1.0}
    return ReplayResult(scheme, counters, [], [], {}, {"assumptions": {}, "compute_gap_scale": "1", "seed": 0})


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_in_one_run_ends_the_others(error: type[BaseException]) -> None:
    """The other runs would never end by themselves."""
    other_runs = threading.Event()

    def run_one(change: Perturbation, progress: object) -> ReplayResult:
        if change.gaps == 2:
            other_runs.wait(10)
            raise error
        while True:
            other_runs.set()
            progress(1, 10)  # type: ignore[operator]

    with pytest.raises(error):
        run_all([Perturbation(gaps=Fraction(1, 2)), Perturbation(gaps=Fraction(2))], run_one, lambda done: None)


def test_results_come_in_the_order_of_the_changes() -> None:
    changes = [Perturbation(seed=number) for number in range(20)]
    results = run_all(changes, lambda change, _: result("buddy", change.seed), lambda done: None)
    assert [one.counters["time_ps"] for one in results] == list(range(20))
