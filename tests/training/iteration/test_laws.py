"""Laws hold for every iteration; they are checked on the schedule, independently of the plan."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.training import schemes
from buddysim.training.driver import simulate_plan
from buddysim.training.iteration import memory_usage, timeline
from buddysim.training.iteration.allocators import POOL, LiveSetCounter, StaticGroups
from buddysim.training.iteration.pinned import host_pinned
from buddysim.training.iteration.plan import PREFETCHES, TrainingOptions
from buddysim.training.iteration.schedule import operations
from buddysim.training.optimizers import optimizer_names
from buddysim.training.outcome import IterationOutcome
from tests.reference.base.ref_pool import RefPool
from tests.reference.training import ref_timeline
from tests.reference.training.ref_memory_usage import ref_groups, ref_levels, ref_pinned
from tests.reference.training.ref_schedule import ref_schedule
from tests.training.doubles import Link, machine
from tests.training.random_networks import costs, networks
from tests.training.random_plans import plans


@st.composite
def outcomes(draw: st.DrawFn) -> IterationOutcome:
    """Generate iterations of the schemes and of random plans."""
    network = draw(networks())
    batch = draw(st.integers(1, 3))
    cost = draw(costs(network))
    tight = draw(st.booleans())
    options = TrainingOptions(
        prefetch=draw(st.sampled_from(PREFETCHES)),
        optimizer=draw(st.sampled_from(list(optimizer_names()))),
        pool_policy=draw(st.sampled_from(["best-fit", "first-fit"])),
        memory_bytes=draw(st.integers(1, 200)) * 1024 if tight else None,
        extra={"buddy_ratio": draw(st.floats(1, 4)), "buddy_slowdown": draw(st.floats(0, 1))},
    )
    wire = Link(draw(st.integers(10**8, 10**11)), draw(st.integers(10**8, 10**11)), draw(st.integers(0, 1000)))
    scheme = draw(st.sampled_from([None, *schemes.runnable_schemes(["buddy_ratio"])]) | st.none())
    if scheme is None:
        plan = draw(plans(network, cost))
    else:
        plan = schemes.REGISTRY.find(scheme).plan(network, batch, machine(link=wire), cost, scheme, options)
    return simulate_plan(network, batch, machine(link=wire), cost, plan, options)


def laws(out: IterationOutcome) -> None:
    check_streams_are_serial(out)
    check_live_addresses_are_disjoint(out)
    check_read_tensors_are_present(out)
    check_copies_balance(out)
    check_times_add_up(out)


@settings(max_examples=50, deadline=None)
@given(outcomes())
def test_laws(out: IterationOutcome):
    laws(out)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(outcomes())
def test_laws_of_many_iterations(out: IterationOutcome):
    laws(out)


@settings(max_examples=50, deadline=None)
@given(outcomes())
def test_reference_components_agree_on_iterations(out: IterationOutcome):
    made, _ = operations(out.program)
    fast, reference = timeline.run(made), ref_timeline.ref_run(made)
    assert (fast.start_ps, fast.end_ps) == (reference.start_ps, reference.end_ps)
    clock = ref_schedule(out.program)
    assert clock.steps == list(zip(out.schedule.step_start_ps, out.schedule.step_end_ps, strict=True))
    assert clock.tasks == {r.task: (r.start_ps, r.end_ps) for r in out.schedule.records if r.task is not None}
    held = memory_usage.levels(out.program)
    rows = [
        {kind: amounts[step.index] for kind, amounts in held.items() if amounts[step.index]}
        for step in out.program.steps
    ]
    assert ref_levels(out.program) == rows
    assert ref_pinned(out.program) == host_pinned(out.program)[0]


@settings(max_examples=40, deadline=None)
@given(outcomes(), st.booleans())
def test_static_groups_agree_with_the_reference(out: IterationOutcome, stashed_in_groups: bool):
    allocation = StaticGroups(stashed_in_groups).allocate(out.program, None)
    by_address: dict[tuple[int, int], set[int]] = {}
    reference = ref_groups(out.program, stashed_in_groups)
    sizes = [max(out.program.tensors[number].byte_count for number in group) for group in reference]
    for number, address in enumerate(allocation.addresses):
        group = next(position for position, members in enumerate(reference) if number in members)
        by_address.setdefault((group, address), set()).add(number)
    assert {group: members for (group, _), members in by_address.items()} == dict(enumerate(reference))
    assert len(by_address) == len(reference), "one address for each group"
    assert allocation.high_water == sum(sizes) == StaticGroups(stashed_in_groups).min_bytes(out.program)


@settings(max_examples=40, deadline=None)
@given(outcomes())
def test_pool_addresses_agree_with_the_reference(out: IterationOutcome):
    allocation = (
        out.placement if out.plan.allocator is POOL else POOL.allocate(out.program, None, out.options.pool_policy)
    )
    capacity = allocation.pool_bytes
    assert capacity is None or capacity <= (out.capacity or 0)
    reference = RefPool(memory_usage.UNLIMITED if capacity is None else capacity, out.options.pool_policy)
    tensors, given_addresses = allocation.program.tensors, allocation.addresses
    for number in allocation.program.resident:
        assert reference.allocate(tensors[number].byte_count) == given_addresses[number]
    for step in allocation.program.steps:
        for number in step.allocate:
            assert reference.allocate(tensors[number].byte_count) == given_addresses[number]
        for number in step.release:
            reference.release(given_addresses[number])


@settings(max_examples=40, deadline=None)
@given(outcomes())
def test_less_than_min_bytes_never_fits(out: IterationOutcome):
    for allocator in (POOL, StaticGroups(), StaticGroups(stashed_in_groups=False), LiveSetCounter()):
        least = allocator.min_bytes(out.program)
        assert allocator.allocate(out.program, None).failure is None
        if least:
            assert allocator.allocate(out.program, least - 1).failure is not None
        if isinstance(allocator, StaticGroups):  # others may need more: what came back early is in the way later
            assert allocator.allocate(out.program, least).failure is None
            assert allocator.allocate(out.program, least).high_water == least


@settings(max_examples=40, deadline=None)
@given(outcomes(), st.integers(1, 20))
def test_what_fits_in_some_memory_fits_in_more(out: IterationOutcome, percent: int):
    least = POOL.min_bytes(out.program)
    sizes = [least + least * percent * step // 100 for step in range(6)]
    fits = [POOL.allocate(out.program, size, out.options.pool_policy).failure is None for size in sizes]
    assert fits == sorted(fits)


def check_streams_are_serial(out: IterationOutcome) -> None:
    for stream in timeline.STREAMS:
        times = sorted((r.start_ps, r.end_ps) for r in out.schedule.records if r.stream == stream)
        assert all(end <= start for (_, end), (start, _) in pairwise(times))


def check_live_addresses_are_disjoint(out: IterationOutcome) -> None:
    """Addresses and times alone show that live tensors never overlap."""
    tensors, schedule = out.program.tensors, out.schedule
    allocated_at = dict.fromkeys(out.program.resident, 0)
    lives = []
    for step in out.program.steps:
        for tensor in step.allocate:
            assert tensor not in allocated_at, "allocated twice"
            allocated_at[tensor] = schedule.step_start_ps[step.index]
        for tensor in step.release:
            lives.append((tensor, allocated_at[tensor], schedule.step_end_ps[step.index]))
    released = {tensor for tensor, _, _ in lives}
    assert released | set(out.program.resident) == set(allocated_at), "every tensor is released, resident ones aren't"
    if out.plan.allocator == LiveSetCounter():
        assert set(out.placement.addresses) <= {-1}
        return
    lives += [(tensor, 0, schedule.time_ps) for tensor in out.program.resident]
    for number, (one, start, end) in enumerate(lives):
        for other, other_start, other_end in lives[:number]:
            if start < other_end and other_start < end:
                low, high = sorted((one, other), key=lambda tensor: out.placement.addresses[tensor])
                apart = out.placement.addresses[high] - out.placement.addresses[low]
                assert apart >= tensors[low].byte_count, (one, other)
    if out.fits and out.capacity is not None:
        ends = [out.placement.addresses[tensor] + tensors[tensor].byte_count for tensor in allocated_at]
        assert max(ends, default=0) <= out.capacity


def check_read_tensors_are_present(out: IterationOutcome) -> None:
    """Feature maps, encodings and gradients are present from their computation or copy until they are freed."""
    network, program, schedule = out.network, out.program, out.schedule
    tasks = {r.task: (r.start_ps, r.end_ps) for r in schedule.records if r.task is not None}
    assert sorted(tasks) == [task.number for task in program.tasks], "every task runs once"
    computations = iter([r for r in schedule.records if r.stream == timeline.COMPUTE])
    forms = {"feature_maps": "y", "decoded_maps": "y", "encoded_maps": "code", "gradient_maps": "dy"}
    alive: set[int] = set(program.resident)
    ready: dict[tuple[str, int], int] = {}  # form and owner of what is on the GPU: since when
    busy: dict[int, int] = {}  # by tensor: until when a copy reads it
    hosted: dict[tuple[str, int], int] = {}  # what is in host memory: since when
    begun: set[tuple[int, str]] = set()

    def content(tensor: int) -> tuple[str, int]:
        return forms[program.tensors[tensor].kind], program.tensors[tensor].layer

    for step in program.steps:
        start, end = schedule.step_start_ps[step.index], schedule.step_end_ps[step.index]
        begin, done = end, start  # a computation of no duration has no record: it is at some time in between
        if step.compute_ps:
            record = next(computations)
            begin, done = record.start_ps, record.end_ps
        alive.update(step.allocate)
        copied = [program.tasks[number] for number in step.tasks if program.tasks[number].tensor in alive]
        if out.plan.offload_saved_tensors or out.plan.host_weights is not None:
            copied = []
        for task in copied:
            if task.stream == "prefetch":
                assert hosted[content(task.tensor)] <= tasks[task.number][0], "fetched before it was offloaded"
                ready[content(task.tensor)] = tasks[task.number][1]
                busy[task.tensor] = tasks[task.number][1]
        layer = network.layers[step.layer]
        own = network.buffer_of(layer.index)
        inputs = {network.buffer_of(producer) for producer in layer.inputs}
        for form, owner in required_structures(
            out, step.pass_, layer.index, first=(step.layer, step.pass_) not in begun
        ):
            assert ready.get((form, owner), end + 1) <= begin, f"{form} of {owner} isn't there"
        begun.add((step.layer, step.pass_))
        for tensor in (*step.reads, *step.writes):
            assert tensor in alive, "freed while needed"
        made = {"encode": "code", "decode": "y", "forward": "y", "recompute": "y"}.get(step.pass_)
        if made is not None:
            ready[made, own] = done
        elif step.pass_ == "backward":
            ready["dy", own] = done
            ready |= {("dy", owner): done for owner in inputs if network.layers[owner].kind != "input"}
        for task in copied:
            if task.stream == "offload":
                assert ready[content(task.tensor)] <= tasks[task.number][0], "offloaded before it was there"
                hosted[content(task.tensor)] = busy[task.tensor] = tasks[task.number][1]
        for tensor in step.release:
            alive.discard(tensor)
            assert busy.get(tensor, start) <= end, "released while it is copied"
            if program.tensors[tensor].kind in forms and not any(
                program.tensors[other].kind in forms and content(other) == content(tensor) for other in alive
            ):
                ready.pop(content(tensor), None)


def required_structures(out: IterationOutcome, pass_: str, index: int, *, first: bool) -> set[tuple[str, int]]:
    """Return the structures that a step must read, from the network and the plan."""
    network = out.network
    layer, own = network.layers[index], network.buffer_of(index)
    inputs = {network.buffer_of(producer) for producer in layer.inputs}

    def stored_structure(owner: int) -> tuple[str, int]:
        stash = out.plan.stash.get(owner)
        inside = any(a <= owner <= b for a, b in out.plan.segments)
        return ("y" if stash is None or stash.encoding is None or stash.decode_before_use or inside else "code", owner)

    if pass_ in ("encode", "decode"):
        return {("y" if pass_ == "encode" else "code", own)}
    if pass_ == "forward":
        return {("y", owner) for owner in inputs}
    if pass_ == "recompute":
        return {stored_structure(owner) for owner in inputs if owner != own}
    if pass_ == "update":
        return set()
    reads = out.plan.backward_reads.get(index, layer.backward_reads)
    structures = {stored_structure(owner) for owner in inputs} if "x" in reads and first else set()
    structures |= {stored_structure(own)} if "y" in reads and first else set()
    last = not network.consumers(index) and not any(
        other.index > index for other in network.layers if network.buffer_of(other.index) == own
    )
    return structures if last else structures | {("dy", own)}


def check_copies_balance(out: IterationOutcome) -> None:
    fetches = 1 if out.plan.host_weights is None else 2  # of weights, before each pass
    assert fetches * out.offload_bytes == out.prefetch_bytes
    assert sum(task.pins - task.unpins for task in out.program.tasks) == 0
    assert out.pinned_bytes <= out.program.host_bytes + sum(task.pins for task in out.program.tasks)
    for task in out.program.tasks:  # what crosses the link is what is stored, unless an engine on the way compresses
        owner = out.program.tensors[task.tensor].layer
        stash = out.plan.stash.get(owner)
        if (
            task.stream == "offload"
            and stash is not None
            and stash.offload is not None
            and stash.offload.link_bytes is None
        ):
            assert task.moved_bytes == task.pins == out.program.tensors[task.tensor].byte_count


def check_times_add_up(out: IterationOutcome) -> None:
    view, program = out.all_layers, out.program
    for stream in ("offload", "prefetch", "host"):
        assert out.time_ps >= sum(task.duration_ps for task in program.tasks if task.stream == stream)
    assert out.time_ps == view.time_ps == view.compute_ps + view.stall_ps
    assert view.usage.time_mean_bytes <= view.usage.peak_bytes
    assert view.usage.peak_bytes == sum(view.usage.at_peak.values()) <= out.placement.high_water
    rows = list(out.per_layer())
    spent = [
        (row.forward_ps, row.recompute_ps, row.backward_ps, row.encode_ps, row.decode_ps, row.update_ps) for row in rows
    ]
    assert sum(map(sum, spent)) == view.compute_ps
    assert sum(row.forward_stall_ps + row.backward_stall_ps for row in rows) == view.stall_ps
