"""The timeline equals times computed by hand, and the reference model."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.machine.training import TrainingMachine
from buddysim.training.driver import simulate_outcome
from buddysim.training.iteration.program import Program, QueuedTask, Step
from buddysim.training.iteration.schedule import schedule
from buddysim.training.iteration.timeline import (
    COMPUTE,
    DIRECTIONS,
    GATHER,
    INDEPENDENT,
    OFFLOAD,
    PREFETCH,
    REDUCE,
    STREAMS,
    Operation,
    SharedFractions,
    run,
    waits,
)
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


HALF = SharedFractions(Fraction(1, 2), Fraction(1, 2))


def test_both_directions_of_a_link_at_once_by_hand():
    """An offload of 10 ps and a prefetch of 30, both at half: 20 ps for the first, then 20 of the other are left."""
    operations = [Operation(OFFLOAD, 10), Operation(PREFETCH, 30), Operation(COMPUTE, 5, (0,))]
    times = run(operations, HALF)
    assert times.end_ps == [20, 40, 25]
    assert run(operations).end_ps == [10, 30, 15]


def test_a_copy_slows_down_from_when_the_other_begins():
    """The offload is alone for 6 ps; then 4 ps of it are left, at 0.8 of its rate: 5 ps."""
    operations = [Operation(OFFLOAD, 10), Operation(COMPUTE, 6), Operation(PREFETCH, 100, (1,))]
    times = run(operations, SharedFractions(offload=Fraction(4, 5)))
    assert times.end_ps == [11, 6, 106]


def test_kernels_slow_down_next_to_collectives_by_hand():
    """A gather of 6 ps, of which a kernel of 10 ps does 2 ps' work meanwhile; then 8 are left."""
    operations = [Operation(COMPUTE, 10), Operation(GATHER, 6), Operation(COMPUTE, 5, (0,))]
    assert run(operations, SharedFractions(compute=Fraction(1, 3))).end_ps == [14, 6, 19]
    assert run(operations).end_ps == [10, 6, 15]


def test_a_gather_and_a_reduction_divide_the_link():
    """A gather of 10 ps next to a reduction of 4: 8 ps at half, then 6 ps of the gather are left."""
    operations = [Operation(GATHER, 10), Operation(REDUCE, 4), Operation(COMPUTE, 20)]
    assert run(operations).end_ps == [14, 8, 20]
    assert run(operations, SharedFractions(compute=Fraction(1, 2))).end_ps == [14, 8, 27]


@given(
    st.lists(st.tuples(st.sampled_from(STREAMS), st.integers(0, 9)), max_size=12),
    st.builds(SharedFractions, *[st.fractions(Fraction(1, 4), 1, max_denominator=9)] * 3),
    st.data(),
)
def test_sharing_agrees_with_the_reference(copies, shared, data):
    operations = []
    for position, (stream, duration) in enumerate(copies):
        after = data.draw(st.sets(st.integers(0, position - 1), max_size=2)) if position else ()
        operations.append(Operation(stream, duration, tuple(sorted(after))))
    times, naive = run(operations, shared), ref_run(operations, shared)
    assert (times.start_ps, times.end_ps) == (naive.start_ps, naive.end_ps)
    if {stream for stream, _ in copies} & {GATHER, REDUCE}:
        return  # what a slower kernel delays may leave the link to others
    alone = run(operations)
    assert all(late >= early for late, early in zip(times.end_ps, alone.end_ps, strict=True))


@st.composite
def programs(draw: st.DrawFn) -> list[Operation]:
    operations = []
    for position in range(draw(st.integers(0, 25))):
        after = draw(st.sets(st.integers(0, position - 1), max_size=3)) if position else ()
        operations.append(Operation(draw(st.sampled_from(STREAMS)), draw(st.integers(0, 9)), tuple(sorted(after))))
    return operations


@settings(max_examples=60)
@given(programs())
def test_timeline_agrees_with_the_reference_and_accounts_for_every_wait(operations: list[Operation]):
    check_timeline(operations)


@pytest.mark.slow
@settings(max_examples=600)
@given(programs())
def test_timelines_of_many_programs_agree_with_the_reference(operations: list[Operation]):
    check_timeline(operations)


def check_timeline(operations: list[Operation]) -> None:
    times = run(operations)
    naive = ref_run(operations)
    assert (times.start_ps, times.end_ps) == (naive.start_ps, naive.end_ps)

    computing = [p for p, operation in enumerate(operations) if operation.stream == COMPUTE]
    idle = times.end_ps[computing[-1]] - sum(operations[p].duration_ps for p in computing) if computing else 0
    assert sum(wait.end_ps - wait.start_ps for wait in waits(operations, times)) == idle


def test_a_program_has_one_link_for_both_directions() -> None:
    """A step of 10 ps with a copy of 10 ps in each direction, both at half of their rates."""
    tasks = [QueuedTask(number, stream, 0, -1, "overlapped", 1, 1, 10, 0) for number, stream in enumerate(DIRECTIONS)]
    program = Program((Step(0, 0, "forward", 10, "features", tasks=(0, 1)),), (), tuple(tasks), (), HALF)
    assert schedule(program).time_ps == 20
    assert schedule(replace(program, shared=INDEPENDENT)).time_ps == 10


def test_a_simulated_iteration_has_the_fractions_of_its_link() -> None:
    machine = TrainingMachine.load("h100-sxm")
    program = simulate_outcome("resnet18", 2, machine, scheme="vdnn-all-m").program
    assert program.shared[:2] == machine.link_rate.shared_fractions != INDEPENDENT[:2]
    assert simulate_outcome("resnet18", 2, "titan-x", scheme="vdnn-all-m").program.shared == INDEPENDENT
