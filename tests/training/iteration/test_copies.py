"""Copies by hand: their time in each direction, and the pinned host memory."""

from __future__ import annotations

from buddysim.training.driver import simulate_plan
from buddysim.training.iteration.pinned import host_failure, host_pinned
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.program import Program, ProgramTensor, QueuedTask, Step, copy_ps, defer
from buddysim.training.iteration.stash import Encoding, Offload, Stash
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.schemes import _algorithms
from buddysim.training.schemes.vdnn import moved_inputs, offloaded
from tests.training.doubles import MS, Cost, Link, chain, machine


def test_a_copy_takes_the_latency_and_its_bytes_rounded_up():
    assert copy_ps(12_800, 12_800_000_000) == 10**6
    assert copy_ps(1, 3 * 10**12, latency_ps=7) == 8
    assert copy_ps(10, 3 * 10**12) == 4
    assert copy_ps(0, 10**9, latency_ps=7) == 7


def test_each_direction_has_its_rate_and_both_the_latency():
    """A feature map of 1 MB takes 0.5 ms out at 2 GB/s and 2 ms back at 0.5 GB/s, each after 0.25 ms."""
    wire = Link(2 * 10**9, 5 * 10**8, MS // 4)
    network, cost = chain("ccc"), Cost()
    plan = Plan("test", _algorithms.fastest(network, 1, cost), stash=moved_inputs(network, offloaded(network, "all")))
    out = simulate_plan(network, 1, machine(link=wire), cost, plan, TrainingOptions())
    took = {stream: set() for stream in ("offload", "prefetch")}
    for record in out.schedule.records:
        if record.stream in took:
            took[record.stream].add((record.end_ps - record.start_ps) / MS)
    assert took == {"offload": {0.75}, "prefetch": {2.25}}


def test_pinned_region_is_freed_at_the_end_of_its_prefetch():
    """100 bytes are copied out and back, then 60, then 50 and 70 together, so at most 120 are pinned at once."""
    tensors, tasks, steps = [], [], []

    def step(*moves: tuple[str, int]) -> None:
        first, index = len(tasks), len(steps)
        for direction, byte_count in moves:
            tensors.append(ProgramTensor(len(tensors), 1, "feature_maps", byte_count, "features"))
            pinned = {"pins" if direction == "offload" else "unpins": byte_count}
            sizes = byte_count, byte_count, 0
            tasks.append(QueuedTask(len(tasks), direction, 1, len(tensors) - 1, "overlapped", *sizes, index, **pinned))
        steps.append(Step(index, 1, "forward", 0, "features", tasks=tuple(range(first, len(tasks)))))

    step(("offload", 100))
    step(("prefetch", 100))
    step(("offload", 60))
    step(("prefetch", 60))
    step(("offload", 50))
    step(("offload", 70))
    step(("prefetch", 50), ("prefetch", 70))
    program = Program(tuple(steps), tuple(tensors), tuple(tasks), ())
    assert host_pinned(program) == (120, 5)
    assert host_failure(program, 120) is None
    failure = host_failure(program, 110)
    assert (failure.requested_bytes, failure.free_bytes, failure.shortfall_bytes) == (70, 60, 10)


def test_the_step_that_launches_a_deferred_copy_waits_for_it():
    """Tensor 0 is copied back in step 0; deferred, in step 1; deferred again, right before step 2 reads it."""
    task = QueuedTask(0, "prefetch", 1, 0, "overlapped", 100, 100, 7, until=0)
    first = Step(0, 3, "backward", 5, "features", tasks=(0,), allocate=(0,))
    second = Step(1, 2, "backward", 5, "features", allocate=(1,), release=(1,), workspace_bytes=1, workspace=1)
    third = Step(2, 1, "backward", 5, "features", reads=(0,), allocate=(2,), release=(0, 2))
    first, second, task = defer(first, second, task)
    assert (first.tasks, first.allocate, second.tasks, second.allocate) == ((), (), (0,), (0, 1))
    assert (task.timing, task.until) == ("overlapped", 1)
    second, third, task = defer(second, third, task)
    assert (second.allocate, third.tasks, third.allocate) == ((1,), (0,), (0, 2))
    assert (task.timing, task.until) == ("before", 2)


def test_a_deferred_copy_that_a_later_step_waits_for_is_waited_for_there():
    task = QueuedTask(0, "prefetch", 1, 0, "overlapped", 100, 100, 7, until=4)
    step, later = (Step(number, 3, "backward", 5, "features") for number in range(2))
    assert defer(step, later, task)[2].until == 4


def test_an_encoded_input_of_a_segment_without_recomputation_stays_encoded():
    """The pool's backward step reads dY alone, so nothing runs again; its input stays encoded, as PyTorch holds it."""
    pool = Layer(1, "pool1", "avgpool", (0,), (250_000,), backward_reads=frozenset({"dy"}))
    network = Network("two", [Layer(0, "input", "input", (), (250_000,)), pool, chain("cc").layers[2]])
    cost = Cost()
    stash = {0: Stash(Encoding(1000, 0, 0), offload=Offload())}
    plan = Plan("test", _algorithms.fastest(network, 1, cost), stash=stash, segments=((1, 1),))
    out = simulate_plan(network, 1, machine(), cost, plan, TrainingOptions())
    assert [(task.stream, task.moved_bytes) for task in out.schedule.program.tasks] == [
        ("offload", 1000),
        ("prefetch", 1000),
    ]
    assert "decode" not in {step.pass_ for step in out.schedule.program.steps}
