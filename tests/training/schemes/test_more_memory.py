"""More memory is never worse, or the result names the smaller budget that is better."""

from __future__ import annotations

import re

import pytest

from buddysim.base.memory_pool import ALIGNMENT, MemoryPool
from buddysim.report.screen import format_as_text
from buddysim.report.training_screen import training_parts
from buddysim.training import simulate
from buddysim.training.driver import simulate_outcome
from buddysim.training.named_network import load_network
from buddysim.training.schemes.vdnn_dyn import FASTER_WITH_LESS

MIB = 2**20
MACHINE = "a100-40"


def test_slack_is_what_a_smaller_pool_does_without() -> None:
    """In a pool of four blocks of which the last is free, any smaller one until the request no longer fits."""
    pool = MemoryPool(8 * ALIGNMENT)
    assert pool.slack_bytes == 8 * ALIGNMENT
    first = pool.allocate(2 * ALIGNMENT)
    assert pool.slack_bytes == 6 * ALIGNMENT
    pool.allocate(1)
    assert pool.slack_bytes == 5 * ALIGNMENT
    pool.release(first)
    assert pool.allocate(2 * ALIGNMENT) == 0  # the block of two instead of the last one, of five
    assert pool.slack_bytes == 3 * ALIGNMENT


def test_a_request_that_takes_the_last_block_to_its_end_leaves_no_slack() -> None:
    pool = MemoryPool(2 * ALIGNMENT)
    pool.allocate(2 * ALIGNMENT)
    assert pool.slack_bytes == 0


@pytest.mark.parametrize("scheme", ["vdnn-conv-m", "vdnn-conv-p", "vdnn-all-p"])
def test_a_static_policy_fits_and_is_as_fast_in_more_memory(scheme: str) -> None:
    network = load_network("vgg16")
    before: tuple[bool, float] = (False, float("inf"))
    for mib in range(5900, 8400, 250):
        out = simulate_outcome(network, 128, MACHINE, scheme, memory_bytes=mib * MIB)
        assert out.fits or not before[0], mib
        if before[0]:
            assert out.time_ps <= before[1], mib
        before = out.fits, out.time_ps


def test_a_fragmented_pool_is_made_smaller_and_the_result_says_so() -> None:
    """At 6,328 MiB conv-m fitted; at 6,625 MiB a prefetch came early and the first pooling layer ran out of memory."""
    small = simulate("vgg16", 128, MACHINE, "vdnn-conv-m", memory_bytes=6328 * MIB)
    large = simulate("vgg16", 128, MACHINE, "vdnn-conv-m", memory_bytes=6625 * MIB)
    assert small.counters["fits"]
    assert large.counters["fits"]
    assert large.counters["time_ms"] == small.counters["time_ms"]
    assert large.outcome.placement.pool_bytes is not None
    assert large.outcome.placement.pool_bytes < 6625 * MIB
    assert "a larger one would be fragmented" in large.provenance["decisions"][-1]
    assert small.provenance["decisions"] == []


def test_the_dynamic_policy_names_the_smaller_budget_that_is_faster() -> None:
    """The published order takes all(p) before it tries greedy conv, which is faster and needs less memory."""
    result = simulate("vgg16", 128, MACHINE, "vdnn-dyn", memory_bytes=8200 * MIB)
    note = next(note for note in result.provenance["decisions"] if note.startswith(FASTER_WITH_LESS))
    budget = re.search(r"--memory-budget (\d+)MiB", note)
    assert budget is not None
    smaller = simulate("vgg16", 128, MACHINE, "vdnn-dyn", memory_bytes=int(budget[1]) * MIB)
    less = 1 - smaller.counters["time_ms"] / result.counters["time_ms"]
    assert f"{100 * less:.0f} % less time" in note
    assert not any(FASTER_WITH_LESS in note for note in smaller.provenance["decisions"])
    screen = " ".join(format_as_text(training_parts({"vdnn-dyn": result.to_dict()}), 80).split())
    assert f"vdnn-dyn: {note}" in screen


def test_no_smaller_budget_is_faster_without_a_note() -> None:
    before = float("inf")
    for mib in range(6100, 12000, 800):
        result = simulate("vgg16", 128, MACHINE, "vdnn-dyn", memory_bytes=mib * MIB)
        if not any(FASTER_WITH_LESS in note for note in result.provenance["decisions"]):
            assert result.counters["time_ms"] <= before
            before = result.counters["time_ms"]
