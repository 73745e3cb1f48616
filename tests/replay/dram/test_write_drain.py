"""Contract of every write drain and refresh: no burst is lost, and no read or write has two times."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.replay.dram.model import REGISTRY as MODELS
from buddysim.replay.dram.refresh import REGISTRY as REFRESHES
from buddysim.replay.dram.write_drain import REGISTRY as WRITE_DRAINS
from tests.replay.bare import run_warps, tiny_machine

ENTRIES = 1024
LINES = st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(0, ENTRIES - 1)), min_size=1, max_size=150)


@pytest.mark.parametrize("refresh", REFRESHES.names())
@pytest.mark.parametrize("drain", WRITE_DRAINS.names())
@settings(max_examples=8, deadline=None)
@given(lines=LINES, high=st.integers(1, 20))
def test_every_burst_is_moved_or_queued(drain: str, refresh: str, lines: list[tuple[int, int]], high: int) -> None:
    machine = tiny_machine(
        dram__write_drain=drain,
        dram__refresh=refresh,
        dram__write_high_watermark=high,
        dram__write_low_watermark=high // 2,
        dram__timing__tREFI="1 us",
    )
    warp = [(kind, [(entry, 15, 15 if kind else 0)]) for kind, entry in lines]
    count, _ = run_warps(machine, [warp], queueing=True)
    again, _ = run_warps(machine, [warp], queueing=True)
    assert count == again
    moved = [sum(channel) for channel in count["dram_moved"]]
    bursts, queued = count["dram_bursts"], count["dram_queued_bursts"]
    assert moved == [done + waiting for done, waiting in zip(bursts, queued, strict=True)]
    assert all(waiting < high for waiting in queued)
    opened = count["dram_row_hits"], count["dram_row_misses"]
    assert all(hits + misses <= done for hits, misses, done in zip(*opened, bursts, strict=True))


@pytest.mark.parametrize("model", MODELS.names())
def test_a_read_on_an_idle_machine_has_the_latency_of_the_machine_file(model: str) -> None:
    machine = tiny_machine(dram__model=model)
    count, _ = run_warps(machine, [[(0, [(0, 1, 0)])]])
    assert count["load_ps"] == machine.ps(machine.dram.load_to_use)


def test_a_refresh_that_takes_its_interval_is_refused() -> None:
    with pytest.raises(BuddysimError, match="tREFI: 200 ns is not longer than tRFCSB"):
        tiny_machine(
            dram__refresh="single_bank",
            dram__timing__tREFI="200 ns",
            dram__timing__tRFC="100 ns",
            dram__timing__tRFCSB="200 ns",
        )
