"""Layer-wise iterations of a recorded network have the same memory as its record: context, workspaces, fragments."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.training import simulate
from buddysim.training.caching_allocator import AllocatorSettings
from buddysim.training.iteration.layered_allocator import LayeredAllocator
from buddysim.training.iteration.program import Program, ProgramTensor, Step
from tests.training.networks.recorded.small_model import BATCH, recorded

MIB = 1 << 20
MACHINE = "h100-sxm"
WORKSPACE, CONTEXT = 3 * MIB, 7 * MIB
RESERVED = (24 + 20 + 14) * MIB


def program() -> Program:
    """Weights of 24 MiB throughout; 12 MiB from the forward to the backward step, which takes 14 MiB for a while."""
    sizes = [24 * MIB, 12 * MIB, 14 * MIB]
    kinds: Any = ["weights", "feature_maps", "temporaries"]
    tensors = tuple(
        ProgramTensor(n, 0, kind, size, "features") for n, (kind, size) in enumerate(zip(kinds, sizes, strict=True))
    )
    forward = Step(0, 1, "forward", 10, "features", allocate=(1,))
    backward = Step(1, 1, "backward", 10, "features", allocate=(2,), release=(1, 2))
    return Program((forward, backward), tensors, (), (0,))


def allocated(capacity: int | None) -> Any:
    return LayeredAllocator(AllocatorSettings.parse(""), WORKSPACE, CONTEXT).allocate(program(), capacity)


def test_segments_workspaces_and_context_by_hand() -> None:
    """The first workspace takes a segment of 20 MiB, in which 12 and 3 MiB more fit; 24 and 14 MiB are segments."""
    memory = allocated(None)
    assert memory.failure is None
    assert memory.high_water == RESERVED
    assert memory.caching.workspace_bytes == 2 * WORKSPACE
    assert memory.caching.outside_bytes == CONTEXT
    assert allocated(RESERVED + CONTEXT).failure is None


def test_one_byte_less_is_too_little_and_the_request_is_named() -> None:
    failure = allocated(RESERVED + CONTEXT - 1).failure
    assert (failure.kind, failure.layer, failure.pass_) == ("temporaries", 1, "backward")
    assert failure.requested_bytes == 14 * MIB
    assert failure.shortfall_bytes == 1


@pytest.mark.parametrize("scheme", ["vdnn-none-m", "vdnn-conv-m", "cswap", "gist-lossless"])
def test_a_scheme_that_moves_nothing_fits_where_eager_does(scheme: str) -> None:
    """In what eager reserves, and in a segment less."""
    network = recorded(3)
    counters = simulate(network, BATCH, MACHINE, "eager").counters
    enough = counters["memory.peak_reserved_bytes"] + counters["memory.by_kind"]["context"]
    for memory in (enough, enough - 2 * MIB):
        plain, other = (
            simulate(network, BATCH, MACHINE, name, memory_bytes=memory).counters for name in ("eager", scheme)
        )
        for name in ("fits", "time_ms", "memory.by_kind", "memory.peak_reserved_bytes"):
            assert other[name] == plain[name], (memory, name)


def test_a_scheme_that_moves_counts_context_and_workspaces() -> None:
    counters = simulate(recorded(3), BATCH, MACHINE, "vdnn-all-m").counters
    by_kind = counters["memory.by_kind"]
    assert by_kind["context"] > 0
    assert by_kind["library_workspace"] > 0
    needed = counters["memory.peak_reserved_bytes"] + by_kind["context"]
    assert simulate(recorded(3), BATCH, MACHINE, "vdnn-all-m", memory_bytes=needed).counters["fits"]
    less = needed - by_kind["context"]
    assert not simulate(recorded(3), BATCH, MACHINE, "vdnn-all-m", memory_bytes=less).counters["fits"]
