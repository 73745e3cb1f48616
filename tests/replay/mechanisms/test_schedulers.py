"""Which warp a scheduler issues (docs/explanation/replay-model.md, Time). A load tells when it was issued: it is the
last to arrive, 200 ns later."""

import pytest

from tests.replay.mechanisms.hand import NS, load, machine, store, time_of


@pytest.mark.parametrize(("policy", "issued_ns"), [("gto", 4), ("lrr", 2)])
def test_gto_issues_the_last_warp_first(policy, issued_ns):
    """The younger warp issues at 1 and could at 2 and 3, the older one at 2."""
    older, younger = [load(0, critical_path_cycles=2)], [store(1)] * 3
    assert time_of(machine(sm__policy=policy), older, younger) == (issued_ns + 200) * NS


def test_gto_issues_the_oldest_warp_next():
    """The second warp issues at 5. At 6 the third is ready since 5, the first since 6: the first is the oldest."""
    first, second, third = (
        [load(0, critical_path_cycles=6)],
        [store(1, critical_path_cycles=5)],
        [store(2, critical_path_cycles=5)],
    )
    assert time_of(machine(), first, second, third) == (6 + 200) * NS
    assert time_of(machine(), [load(0, critical_path_cycles=5)], second, third) == (5 + 200) * NS


@pytest.mark.parametrize(("policy", "issued_ns"), [("gto", 2), ("lrr", 4)])
def test_lrr_issues_warps_in_rotation(policy, issued_ns):
    """Three warps of two operations, all ready."""
    warps = [[store(0), load(1)], [store(2), store(3)], [store(4), store(5)]]
    assert time_of(machine(sm__policy=policy), *warps) == (issued_ns + 200) * NS


def test_lrr_skips_waiting_warps():
    warps = [[store(0), store(1)], [store(2, critical_path_cycles=9)], [store(3), store(4)], [store(5), load(6)]]
    assert time_of(machine(sm__policy="lrr"), *warps) == (6 + 200) * NS


def test_warps_are_assigned_to_schedulers_round_robin():
    """Both schedulers issue at 1; the L1 takes four lines a cycle."""
    both = machine(sm__schedulers=2, l1__lines_per_cycle=4)
    assert time_of(both, [store(0)], [store(1)]) == 101 * NS + 250
    assert time_of(both, [store(0)], [store(1)], [store(2)]) == 102 * NS
