"""A factor on compute gaps changes every time and every issue slot between memory operations of a warp."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import buddysim
import buddysim.trace as bt
from buddysim.base.errors import BuddysimError
from buddysim.replay.compute_gap_scale import exact_compute_gap_scale
from tests.replay.events import provenance
from tests.trace.builders import line, records

BASE = 1 << 33
WARPS = 8  # of a thread block: four to a scheduler, so that issue slots are short

NOTHING = {
    "gap_instructions": 0,
    "critical_path": 1,
    "use": 0,
    "unit": 0,
    "tail": 0,
    "tail_critical_path_cycles": 0,
    "tail_unit": 0,
}
#: What a trace may have between memory operations; in each of these it decides the time of the run.
CASES = {
    "gap_instructions": {"gap_instructions": 300, "critical_path": 320},
    "critical_path": {"critical_path": 2000},
    "first use": {"use": 3000, "critical_path": 6000},
    "unit slots": {"unit": 500},
    "tail's issue slots": {"tail": 4000, "tail_critical_path_cycles": 8},
    "tail's unit slots": {"tail": 8, "tail_critical_path_cycles": 16, "tail_unit": 3000},
    "tail's many unit slots": {"tail": 8, "tail_critical_path_cycles": 16, "tail_unit": 40_000},
    "tail's chain": {"tail_critical_path_cycles": 9000},
    "everything": {
        "gap_instructions": 30,
        "critical_path": 40,
        "use": 50,
        "unit": 60,
        "tail": 70,
        "tail_critical_path_cycles": 80,
    },
}


def written(path: Path, factor: int = 1, timed: bool = True, **case: int) -> Path:
    """Return a thread block whose warps load twice, with compute gaps multiplied by a factor."""
    some = {key: value * factor for key, value in {**NOTHING, **case}.items()}
    op = {
        "gap_instructions": some["gap_instructions"],
        "critical_path_cycles": some["critical_path"],
        "use_distance": 1 if some["use"] else 0,
        "use_cycles": some["use"],
        "unit_busy_slots": some["unit"],
        "flags": bt.FLAG_TIMED if timed else 0,
    }
    warps = [
        (
            {
                "warp": warp,
                "tail_gap_instructions": some["tail"],
                "tail_critical_path_cycles": some["tail_critical_path_cycles"] if timed else 0,
                "tail_unit_busy_slots": some["tail_unit"],
            },
            [(op, [line(BASE + 128 * (2 * warp + number))]) for number in range(2)],
        )
        for warp in range(WARPS)
    ]
    with bt.TraceWriter(path, provenance()) as writer:
        writer.add_allocation("data", BASE, 1 << 16)
        writer.begin_kernel("kernel", (1, 1, 1), (32 * WARPS, 1, 1))
        writer.add_blocks(*records([(0, warps)]))
        writer.end_kernel()
    return path


def ran(path: Path, scale: float = 1) -> dict[str, int]:
    counters = buddysim.simulate(path, scheme="ideal", compute_gap_scale=scale).counters
    return {key: counters[key] for key in ("time_ps", "warp_instructions")}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("factor", [2, 7])
def test_it_is_as_if_the_trace_had_them_so(tmp_path: Path, case: str, factor: int) -> None:
    once, multiplied = written(tmp_path / "1", **CASES[case]), written(tmp_path / "2", factor, **CASES[case])
    assert ran(once, factor) == ran(multiplied)
    assert ran(multiplied, Fraction(1, factor)) == ran(once)
    assert ran(once, factor)["time_ps"] > ran(once)["time_ps"] * 1.2


def test_gaps_of_untimed_traces_too(tmp_path: Path) -> None:
    path = written(tmp_path / "t", timed=False, gap_instructions=200, tail=4000)
    half, one, double = (ran(path, scale)["time_ps"] for scale in (0.5, 1, 2))
    assert half < one / 1.7
    assert double > 1.7 * one


def test_instructions_are_scaled_to_the_nearest(tmp_path: Path) -> None:
    """Small factors round two instructions to two; the memory operations stay the same."""
    path = written(tmp_path / "t", gap_instructions=2, tail=20)
    operations = 2 * WARPS
    for scale, gap, tail in ((1, 2, 20), (0.975, 2, 20), (1.025, 2, 21), (0.5, 1, 10), (2.5, 5, 50)):
        assert ran(path, scale)["warp_instructions"] == operations * (gap + 1) + WARPS * tail


def test_no_factor_overflows(tmp_path: Path) -> None:
    """A trace's longest compute gap does not overflow with a factor whose exact fraction takes 53 bits."""
    path = written(tmp_path / "t", critical_path=2**32 - 1, tail_critical_path_cycles=2**32 - 1)
    whole, part = ran(path)["time_ps"], ran(path, 0.2567)["time_ps"]
    assert part / whole == pytest.approx(0.2567, rel=1e-6)
    assert ran(path, 0.7 + 0.1)["time_ps"] / whole == pytest.approx(0.8, rel=1e-6)


@pytest.mark.parametrize(
    ("scale", "fraction"),
    [(0.2567, Fraction(2567, 10000)), (0.1 + 0.2, Fraction(3, 10)), (1 / 3, Fraction(1, 3)), (2, Fraction(2))],
)
def test_a_factor_is_the_nearest_fraction(scale: float, fraction: Fraction) -> None:
    assert exact_compute_gap_scale(scale) == fraction


@pytest.mark.parametrize("scale", [0, -1, 1e-9, 1001, float("nan"), float("inf"), "2", None, True])
def test_what_is_no_factor_is_refused(scale: object) -> None:
    with pytest.raises(BuddysimError, match=r"^compute_gap_scale .*: expected a number from 1/1000 to 1000$"):
        exact_compute_gap_scale(scale)  # type: ignore[arg-type]
