"""The lines of host and GPU, computed by hand."""

from __future__ import annotations

import pytest

from buddysim.training.autograd import Tape
from buddysim.training.autograd.dtypes import float32
from buddysim.training.cost.operators.host import (
    MAX_ENTRIES,
    ONE_ENTRY,
    PS_PER_US,
    HostConstants,
    LaunchQueue,
    entries_of,
    host_ps,
)
from buddysim.training.networks.recorded.work import OperationWork

US = PS_PER_US
CONSTANTS = HostConstants(forward_us=10, backward_us=6, optimizer_us=2, compiled_us=3, launch_us=4)


def test_short_kernels_wait_for_the_host() -> None:
    """Launches at 10, 20 and 30 us, 4 us to each start: kernels of 1 us end at 15, 25 and 35 us."""
    queue = LaunchQueue(CONSTANTS)
    assert [queue.launch(10 * US, US) for _ in range(3)] == [15 * US, 10 * US, 10 * US]


def test_long_kernels_hide_the_host() -> None:
    queue = LaunchQueue(CONSTANTS)
    assert [queue.launch(10 * US, 50 * US) for _ in range(3)] == [64 * US, 50 * US, 50 * US]


def test_the_host_runs_ahead_while_a_long_kernel_runs() -> None:
    """A kernel of 100 us covers ten launches; those after it run one right after the other."""
    queue = LaunchQueue(CONSTANTS)
    queue.launch(10 * US, 100 * US)
    assert [queue.launch(10 * US, US) for _ in range(9)] == [US] * 9


def test_each_launcher_has_its_own_time() -> None:
    def spent(launcher: str, tensors: int = 1) -> float:
        return host_ps(OperationWork(0, launcher=launcher, tensors=tensors), CONSTANTS) / US  # type: ignore[arg-type]

    assert [spent("forward"), spent("backward"), spent("compiled"), spent("optimizer", 5)] == [10, 6, 3, 20]


def test_a_stream_holds_so_many_launches_and_the_host_waits_for_the_oldest() -> None:
    """Kernels of 100 us, launched in 10 us each: the host is as many kernels ahead as the stream holds."""
    queue = LaunchQueue(CONSTANTS)
    for _ in range(MAX_ENTRIES):
        queue.launch(10 * US, 100 * US)
    assert queue.host_ps == MAX_ENTRIES * 10 * US
    for _ in range(MAX_ENTRIES):
        queue.launch(10 * US, 100 * US)
    assert queue.gpu_ps - queue.host_ps == MAX_ENTRIES * 100 * US - 10 * US


def test_kernels_and_events_of_an_operator_take_entries_too() -> None:
    """Operators of two entries, or with an event behind each, fill the stream with half as many."""
    two, events = LaunchQueue(CONSTANTS), LaunchQueue(CONSTANTS)
    for _ in range(MAX_ENTRIES):
        two.launch(10 * US, 100 * US, 2 * ONE_ENTRY)
        events.launch(10 * US, 100 * US)
        events.record_event()
    for queue in (two, events):
        assert queue.gpu_ps - queue.host_ps == MAX_ENTRIES // 2 * 100 * US - 10 * US


@pytest.mark.parametrize(("rows", "entries"), [(4096, 200), (4095, 100)])
def test_sums_of_many_values_clear_semaphores(rows: int, entries: int) -> None:
    with Tape() as tape:
        tape.launch("sum", (tape.empty((rows, 8), float32, "x"),), (tape.empty((8,), float32, "sum"),))
    assert entries_of(tape.operations[-1]) == entries
