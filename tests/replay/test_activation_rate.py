"""A pseudo-channel activates rows no faster than max(tRRD, tFAW / 4) allows, in any order of requests."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.replay.parameters import engine_numbers
from tests.reference.replay.dram.banks import RefActivationWindow
from tests.reference.replay.primitives.reservation_table import RefReservationTable
from tests.replay.bare import run_warps, tiny_machine

INTERVAL = 4000
request_times = st.lists(st.integers(0, 60 * INTERVAL), min_size=2, max_size=60)


def activated(times: list[int]) -> list[int]:
    """When rows are activated that are requested at these times, in this order."""
    activations = RefActivationWindow(INTERVAL, RefReservationTable(INTERVAL, 0, 0))
    activated_at = [activations.activate(t) for t in times]
    assert all(at >= t for t, at in zip(times, activated_at, strict=True))
    return activated_at


@given(request_times)
def test_out_of_order_there_is_one_in_each_interval(times):
    activated_at = sorted(activated(times))
    slots = [at // INTERVAL for at in activated_at]
    assert len(set(slots)) == len(slots)


@given(request_times)
def test_in_order_they_are_an_interval_apart_and_wait_for_nothing_else(times):
    activated_at = activated(sorted(times))
    free = 0
    for t, at in zip(sorted(times), activated_at, strict=True):
        assert at == max(t, free)
        free = at + INTERVAL


rows = st.lists(st.lists(st.integers(0, 4095), min_size=1, max_size=32, unique=True), min_size=4, max_size=24)


@given(rows)
@settings(max_examples=25, deadline=None)
def test_the_engine_opens_no_more_rows_than_the_rate_allows(lines):
    machine = tiny_machine(dram__timing__tFAW="400 ns", l1__enabled=False)
    interval = engine_numbers(machine, Fraction(1))["dram_timing"]["act_interval"]  # type: ignore[index]
    assert interval == 100_000
    warps = [[(0, [(entry, 1, 0) for entry in touched])] for touched in lines]
    count, _ = run_warps(machine, warps, regions=[(0, 4096, 0, 4)])
    for misses in count["dram_row_misses"]:
        assert (misses - 1) * interval <= count["now_ps"] + interval
