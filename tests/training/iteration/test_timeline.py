"""The timeline equals times computed by hand, and the reference model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.training.iteration.timeline import COMPUTE, OFFLOAD, PREFETCH, STREAMS, Operation, run, waits
from tests.reference.training.ref_timeline import ref_run


def test_streams_overlap_and_wait_for_the_operations_that_they_name():
    operations = [
        Operation(COMPUTE, 10),
        Operation(OFFLOAD, 25),  # overlaps with both computations
        Operation(COMPUTE, 10),
        Operation(COMPUTE, 5, (1, 2)),
    ]
    times = run(operations)
    assert times.start_ps == [0, 0, 10, 25]
    assert times.end_ps == [10, 25, 20, 30]
    assert [tuple(wait) for wait in waits(operations, times)] == [(3, 1, 20, 25)]


def test_copies_of_one_direction_queue_and_split_the_wait():
    operations = [
        Operation(COMPUTE, 10),
        Operation(PREFETCH, 20),
        Operation(PREFETCH, 30),
        Operation(OFFLOAD, 15),
        Operation(COMPUTE, 1, (0, 2, 3)),
    ]
    times = run(operations)
    assert times.start_ps == [0, 0, 20, 0, 50]
    assert [tuple(wait) for wait in waits(operations, times)] == [(4, 1, 10, 20), (4, 2, 20, 50)]


def test_a_wait_follows_the_copies_from_one_direction_to_the_other():
    operations = [
        Operation(COMPUTE, 5), Operation(OFFLOAD, 7, (0,)), Operation(PREFETCH, 3, (1,)), Operation(COMPUTE, 1, (2,)),
    ]  # fmt: skip
    assert [tuple(wait) for wait in waits(operations, run(operations))] == [(3, 1, 5, 12), (3, 2, 12, 15)]


def test_wait_for_a_later_operation_is_an_error():
    with pytest.raises(ValueError, match="operation 0 waits for operation 1"):
        run([Operation(COMPUTE, 1, (1,)), Operation(OFFLOAD, 1)])


@st.composite
def programs(draw: st.DrawFn) -> list[Operation]:
    operations = []
    for position in range(draw(st.integers(0, 25))):
        after = draw(st.sets(st.integers(0, position - 1), max_size=3)) if position else ()
        operations.append(Operation(draw(st.sampled_from(STREAMS)), draw(st.integers(0, 9)), tuple(sorted(after))))
    return operations


@settings(max_examples=150)
@given(programs())
def test_timeline_agrees_with_the_reference_and_accounts_for_every_wait(operations: list[Operation]):
    times = run(operations)
    naive = ref_run(operations)
    assert (times.start_ps, times.end_ps) == (naive.start_ps, naive.end_ps)

    computing = [p for p, operation in enumerate(operations) if operation.stream == COMPUTE]
    idle = times.end_ps[computing[-1]] - sum(operations[p].duration_ps for p in computing) if computing else 0
    assert sum(wait.end_ps - wait.start_ps for wait in waits(operations, times)) == idle
