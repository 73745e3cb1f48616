"""Every link protocol: data take at least their payload; an idle read has the machine file's latency."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.replay.link.protocol import REGISTRY
from tests.replay.bare import run_warps, tiny_machine

LINES = st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(0, 255), st.integers(1, 15)), min_size=1, max_size=60)


@pytest.mark.parametrize("name", REGISTRY.names())
@settings(max_examples=20, deadline=None)
@given(lines=LINES)
def test_a_transfer_takes_no_fewer_bytes_than_its_payload(name: str, lines: list[tuple[int, int, int]]) -> None:
    warp = [(kind, [(entry, mask, mask if kind else 0)]) for kind, entry, mask in lines]
    count, _ = run_warps(tiny_machine(link__protocol=name), [warp], "pinned-host")
    for direction in ("read", "write"):
        assert count[f"link_{direction}_total_bytes"] >= sum(count[f"link_{direction}"])


@pytest.mark.parametrize("name", REGISTRY.names())
def test_an_idle_read_has_the_latency_of_the_machine_file(name: str) -> None:
    machine = tiny_machine(link__protocol=name)
    count, _ = run_warps(machine, [[(0, [(0, 1, 0)])]], "pinned-host")
    assert count["load_ps"] == machine.ps(machine.link.load_to_use)
