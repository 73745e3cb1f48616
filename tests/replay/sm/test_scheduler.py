"""Contract of every warp scheduler: it issues each warp, none before it can, and no run depends on another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.replay.sm.scheduler import REGISTRY
from tests.replay.mechanisms.hand import machine, run, store
from tests.trace.builders import Op

NAMES = REGISTRY.names()
#: Latencies of the compute gaps before each store of a warp, in cycles.
WARPS = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=16)


def ended_ps(name: str, *warps: list[int]) -> int:
    """Return the end of warps that issue stores after these compute gaps, on an SM where only issue takes time."""
    scheduled = machine(
        sm__policy=name,
        l1__bank_conflicts="sector",
        l1__mshrs=4096,
        crossbar__request_bandwidth="100000 GB/s",
        l2__bandwidth="100000 GB/s",
    )
    operations: list[list[Op]] = [[store(0, critical_path_cycles=gap) for gap in gaps] for gaps in warps]
    end_ps: int = run(scheduled, *operations)["now_ps"]
    return end_ps


@pytest.mark.parametrize("name", NAMES)
@given(warps=WARPS)
def test_warps_end_no_earlier_than_alone_and_no_later_than_one_after_another(name, warps):
    alone = [ended_ps(name, gaps) for gaps in warps]
    assert max(alone) <= ended_ps(name, *warps) <= sum(alone)


@pytest.mark.parametrize("name", NAMES)
@given(first=WARPS, second=WARPS)
def test_a_run_does_not_depend_on_another(name, first, second):
    alone = ended_ps(name, *second)
    ended_ps(name, *first)
    assert ended_ps(name, *second) == alone
