"""Times of collectives: by hand, in their limits, and against what was measured."""

from __future__ import annotations

from math import log2
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.machine.training import TrainingMachine, gpu_links
from buddysim.training.collectives import CollectiveTimes
from buddysim.training.collectives.constants import (
    LinkConstants,
    ProtocolConstants,
    SwitchConstants,
    link_constants,
)
from buddysim.training.collectives.errors import collective_errors
from buddysim.training.collectives.split import FITTED, LINKS
from buddysim.training.collectives.times import KINDS, collective_us
from tools.fit_collectives import page

SMALL, MEDIUM, LARGE = ProtocolConstants(5, 1, 10), ProtocolConstants(7, 1.5, 50), ProtocolConstants(10, 2, 100)
BY_HAND = LinkConstants(SMALL, MEDIUM, LARGE, 500, None, False, "by hand")
MIB = 1 << 20


def test_rings_by_hand() -> None:
    """Four GPUs, 800 MB: three steps of 2 us, 600 MB at 100 GB/s, 200 MB of its own at 500 GB/s."""
    assert collective_us(BY_HAND, "all_gather", 800_000_000, 4) == pytest.approx(10 + 6 + 6000 + 400)
    assert collective_us(BY_HAND, "reduce_scatter", 800_000_000, 4) == pytest.approx(10 + 6 + 6000 + 400)
    assert collective_us(BY_HAND, "all_reduce", 800_000_000, 4) == pytest.approx(10 + 12 + 12000 + 400)
    assert collective_us(BY_HAND, "broadcast", 800_000_000, 4) == pytest.approx(10 + 6 + 8000 + 400)


def test_a_small_message_takes_the_protocol_and_the_quickest_tree() -> None:
    assert collective_us(BY_HAND, "all_gather", 0, 8) == 5 + 7
    assert collective_us(BY_HAND, "all_reduce", 0, 8) == 5 + 2 * log2(8)  # a ring would take 14 steps


def test_the_switch_reduces_where_enough_gpus_take_part() -> None:
    switch = LinkConstants(SMALL, MEDIUM, LARGE, 500, SwitchConstants(20, 400, 8), False, "by hand")
    assert collective_us(switch, "all_reduce", 800_000_000, 8) == pytest.approx(20 + 2000)
    assert collective_us(switch, "all_reduce", 800_000_000, 4) == collective_us(BY_HAND, "all_reduce", 800_000_000, 4)
    assert collective_us(switch, "all_gather", 800_000_000, 8) == collective_us(BY_HAND, "all_gather", 800_000_000, 8)


def test_pairs_divide_the_rate_of_a_host() -> None:
    shared = LinkConstants(SMALL, MEDIUM, LARGE, 1e9, None, True, "by hand")
    alone = LinkConstants(SMALL, MEDIUM, LARGE, 1e9, None, False, "by hand")
    byte_count = 800_000_000
    assert collective_us(shared, "all_gather", byte_count, 2) == collective_us(alone, "all_gather", byte_count, 2)
    assert collective_us(shared, "all_gather", byte_count, 4) == pytest.approx(10 + 6 + 2 * 6000, rel=1e-6)


def test_between_nodes_the_network_bounds_the_rate() -> None:
    """16 A100: eight ports of 25 GB/s between two nodes leave the ring's rate as it is; ports of 5 GB/s don't."""
    times = CollectiveTimes(TrainingMachine.load("a100-80"))
    within, between = times.time_ps("all_gather", 1 << 30, 8), times.time_ps("all_gather", 1 << 30, 16)
    assert within < between < 1.2 * within
    times._network_gb_per_s = 5.0
    sent = (1 << 30) * 15 / 16
    assert times.time_ps("all_gather", 1 << 30, 16) == pytest.approx(sent / 40e9 * 1e12, rel=0.05)


def test_gpus_without_a_network_or_a_link() -> None:
    with pytest.raises(BuddysimError, match="16 GPUs linked by pcie4-through-host: expected at most 8"):
        CollectiveTimes(TrainingMachine.load("rtx-4090")).time_ps("all_gather", 1, 16)
    with pytest.raises(BuddysimError, match="titan-x: no link to other GPUs"):
        CollectiveTimes(TrainingMachine.load("titan-x"))
    assert CollectiveTimes(TrainingMachine.load("rtx-4090")).time_ps("all_gather", MIB, 1) == 0


def test_every_link_has_constants() -> None:
    assert set(link_constants()) == set(gpu_links())
    assert set(FITTED) <= set(link_constants())
    assert all(constants.source for constants in link_constants().values())


@given(
    st.sampled_from(sorted(link_constants())), st.sampled_from(KINDS), st.integers(0, 1 << 32), st.integers(0, 1 << 32)
)
def test_more_bytes_never_take_less_time(link: str, kind: str, one: int, other: int) -> None:
    constants = link_constants()[link]
    less, more = sorted((one, other))
    assert 0 < collective_us(constants, kind, less, 8) <= collective_us(constants, kind, more, 8)


@given(st.integers(0, 1 << 32), st.floats(1.1, 10))
def test_a_faster_link_never_takes_more_time(byte_count: int, factor: float) -> None:
    faster = ProtocolConstants(LARGE.launch_us, LARGE.hop_us, LARGE.gb_per_s * factor)
    better = LinkConstants(SMALL, MEDIUM, faster, 500, None, False, "by hand")
    for kind in KINDS:
        assert collective_us(better, kind, byte_count, 8) <= collective_us(BY_HAND, kind, byte_count, 8)


def test_large_collectives_over_nvlink_that_were_not_fitted() -> None:
    """Medians within 8 % of what was measured, whatever the GPU, kind and version of NCCL; all within a quarter."""
    rows = [row for row in collective_errors() if LINKS[row.gpu].startswith("nvlink") and row.large and not row.fitted]
    assert {row.gpu for row in rows} >= {"A100-SXM4", "H100-SXM5-80GB", "H200-SXM", "B200-SXM", "GB200"}
    assert max(row.error for row in rows) < 0.2
    assert median(row.error for row in rows) < 0.04
    assert min(row.near for row in rows) > 0.6


def test_small_collectives_that_were_not_fitted() -> None:
    rows = [row for row in collective_errors() if LINKS[row.gpu].startswith("nvlink") and not row.large]
    assert median(row.error for row in rows if not row.fitted) < 0.1


def test_the_page_of_errors_has_every_row() -> None:
    text = page()
    assert all(f"| {row.gpu} |" in text for row in collective_errors())
