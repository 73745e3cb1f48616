"""The order of another run, and ports without buckets: what the experiments of `laws.cause_of` switch off."""

from __future__ import annotations

import pytest

from tests.laws.exact_ports import exact_ports
from tests.laws.laws import examples, law_case, slowdowns_in_order
from tests.reference.replay.primitives.ports import RefPort

UNITS_PER_PS = 1024


@pytest.mark.parametrize("seed", [4, 13, 33, 46])
def test_a_run_in_its_own_order_takes_the_same_time(seed: int) -> None:
    """Instruction caches and streams (4), Unified Memory by block (33) among them."""
    case, _ = law_case(seed)
    assert slowdowns_in_order(case, lambda machine: machine, [False, True]) == [0, 0]


def test_another_order_takes_another_time() -> None:
    """Of 16 MSHRs in place of 1, the order of issue alone slows the run."""
    example = next(one for one in examples() if one.cause == "issue_order")
    better = example.better
    own, all_steps = slowdowns_in_order(example.case, better, [False, True])
    assert own == pytest.approx(example.slowdown, abs=2e-4)
    assert all_steps <= 0


def test_exact_ports_have_no_buckets() -> None:
    """Requests of 40 ns that arrive at 10 and 60 ns leave 50 to 60 and from 100 ns on."""
    exact, buckets = RefPort(), RefPort()
    with exact_ports():
        starts = [exact.request(t, cost * UNITS_PER_PS) for t, cost in ((60_000, 40_000), (10_000, 40_000))]
        starts += [exact.request(t, cost * UNITS_PER_PS) for t, cost in ((20_000, 10_000), (20_000, 11_000))]
    assert starts == [60_000, 10_000, 50_000, 100_000]
    assert [buckets.request(t, 40_000 * UNITS_PER_PS) for t in (60_000, 10_000)] == [60_000, 65_536 + 14_464 - 40_000]
