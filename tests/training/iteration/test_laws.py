"""What must hold in any iteration, checked from what happened, not from how it was planned."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.naive_pool import NaivePool
from buddysim.training import schemes
from buddysim.training.driver import carry_out
from buddysim.training.iteration import memory, naive_timeline, timeline
from buddysim.training.iteration.plan import PREFETCHES, Options
from buddysim.training.iteration.schedule import operations
from buddysim.training.outcome import Outcome
from tests.training.doubles import Link, machine
from tests.training.random_networks import costs, networks


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    network = draw(networks())
    batch = draw(st.integers(1, 3))
    cost = draw(costs(network))
    scheme = draw(st.sampled_from(schemes.REGISTRY.names()))
    tight = draw(st.booleans())
    options = Options(
        prefetch=draw(st.sampled_from(PREFETCHES)),
        fit=draw(st.sampled_from(["best-fit", "first-fit"])),
        memory_bytes=draw(st.integers(1, 200)) * 1024 if tight else None,
    )
    wire = Link(draw(st.integers(10**8, 10**11)), draw(st.integers(10**8, 10**11)), draw(st.integers(0, 1000)))
    plan = schemes.REGISTRY.find(scheme).plan(network, batch, machine(link=wire), cost, scheme, options)
    return carry_out(network, batch, machine(link=wire), cost, plan, options)


@settings(max_examples=200, deadline=None)
@given(outcomes())
def test_laws(out: Outcome):
    streams_run_one_thing_at_a_time(out)
    live_tensors_never_share_an_address(out)
    everything_read_is_there(out)
    copies_balance(out)
    times_add_up(out)


@settings(max_examples=40, deadline=None)
@given(outcomes())
def test_the_naive_timeline_agrees_on_iterations(out: Outcome):
    made, _ = operations(out.program)
    fast, naive = timeline.run(made), naive_timeline.naive_run(made)
    assert (fast.start_ps, fast.end_ps) == (naive.start_ps, naive.end_ps)


@settings(max_examples=60, deadline=None)
@given(outcomes())
def test_the_naive_pool_gives_every_tensor_the_same_address(out: Outcome):
    naive = NaivePool(out.capacity if out.fits and out.capacity else memory.UNLIMITED, out.options.fit)
    tensors, given_addresses = out.program.tensors, out.placement.addresses
    for number in out.program.resident:
        assert naive.allocate(tensors[number].byte_count) == given_addresses[number]
    for step in out.program.steps:
        for number in step.allocate:
            assert naive.allocate(tensors[number].byte_count) == given_addresses[number]
        for number in step.release:
            naive.release(given_addresses[number])


def streams_run_one_thing_at_a_time(out: Outcome) -> None:
    for stream in timeline.STREAMS:
        times = sorted((r.start_ps, r.end_ps) for r in out.schedule.records if r.stream == stream)
        assert all(end <= start for (_, end), (start, _) in pairwise(times))


def live_tensors_never_share_an_address(out: Outcome) -> None:
    """From addresses and times alone: a tensor lives from the start of its first step to the end of its last."""
    tensors, schedule = out.program.tensors, out.schedule
    born = dict.fromkeys(out.program.resident, 0)
    lives = []
    for step in out.program.steps:
        for tensor in step.allocate:
            assert tensor not in born, "allocated twice"
            born[tensor] = schedule.step_start_ps[step.index]
        for tensor in step.release:
            lives.append((tensor, born[tensor], schedule.step_end_ps[step.index]))
    released = {tensor for tensor, _, _ in lives}
    assert released | set(out.program.resident) == set(born), "every tensor is released, resident ones aren't"
    lives += [(tensor, 0, schedule.time_ps) for tensor in out.program.resident]
    for number, (one, start, end) in enumerate(lives):
        for other, other_start, other_end in lives[:number]:
            if start < other_end and other_start < end:
                low, high = sorted((one, other), key=lambda tensor: out.placement.addresses[tensor])
                apart = out.placement.addresses[high] - out.placement.addresses[low]
                assert apart >= tensors[low].byte_count, (one, other)
    if out.fits and out.capacity is not None:
        ends = [out.placement.addresses[tensor] + tensors[tensor].byte_count for tensor in born]
        assert max(ends, default=0) <= out.capacity


def everything_read_is_there(out: Outcome) -> None:
    """Follows contents: a map is valid once its layers have run, or its copy has come back, until it is released."""
    network, program, schedule = out.network, out.program, out.schedule
    ends = {(c.direction, c.number): 0 for c in program.copies}
    records = iter([r for r in schedule.records if r.stream != timeline.COMPUTE])
    starts = dict(ends)
    for step in program.steps:
        ordered = sorted(step.copies, key=lambda c: ("before", "overlapped", "after").index(program.copies[c].timing))
        for number in ordered:
            copy, record = program.copies[number], next(records)
            assert (record.stream, record.layer, record.byte_count) == (copy.direction, copy.layer, copy.byte_count)
            starts[copy.direction, number], ends[copy.direction, number] = record.start_ps, record.end_ps
    computed = {
        (r.layer, r.pass_): r.start_ps for r in schedule.records if r.stream == timeline.COMPUTE
    }  # a computation of no duration has no record
    valid: set[tuple[str, int]] = set()  # ("y" | "dy", owner) on the GPU
    hosted: dict[int, int] = {}  # tensor contents in host memory: layer whose map -> end of its offload
    maps = {t.number: ("dy" if t.kind == "gradient_maps" else "y", t.layer) for t in program.tensors}
    alive: set[int] = set(program.resident)
    for step in program.steps:
        begin = computed.get((step.layer, step.pass_), schedule.step_end_ps[step.index])
        alive.update(step.allocate)
        for number in step.copies:
            copy = program.copies[number]
            if copy.direction == "prefetch" and out.plan.offload:
                owner = program.tensors[copy.tensor].layer
                assert hosted[owner] <= starts["prefetch", number], "fetched before it was offloaded"
                assert copy.timing != "before" or ends["prefetch", number] <= begin
                assert ends["prefetch", number] <= schedule.step_end_ps[step.index]
                if copy.timing == "before":
                    valid.add(("y", owner))
        layer = network.layers[step.layer]
        own = network.buffer_of(layer.index)
        inputs = {network.buffer_of(producer) for producer in layer.inputs}
        if step.pass_ == "backward":
            needs = out.plan.saves.get(layer.index, layer.needs)
            if "x" in needs:
                assert all(("y", owner) in valid for owner in inputs), "X isn't there"
            if "y" in needs:
                assert ("y", own) in valid, "Y isn't there"
            last = not network.consumers(layer.index) and not any(
                other.index > layer.index for other in network.layers if network.buffer_of(other.index) == own
            )
            assert last or ("dy", own) in valid, "dY isn't there"
            valid.add(("dy", own))
            valid |= {("dy", owner) for owner in inputs if network.layers[owner].kind != "input"}
        else:
            assert all(("y", owner) in valid for owner in inputs), "an input isn't there"
            valid.add(("y", own))
        for tensor in (*step.reads, *step.writes):
            assert tensor in alive, "freed while needed"
        for number in step.copies:
            copy = program.copies[number]
            if copy.direction == "offload" and out.plan.offload:
                owner = program.tensors[copy.tensor].layer
                assert ("y", owner) in valid
                assert copy.tensor in alive
                hosted[owner] = ends["offload", number]
            elif copy.timing == "overlapped":
                valid.add(("y", program.tensors[copy.tensor].layer))
        for tensor in step.release:
            alive.discard(tensor)
            if program.tensors[tensor].kind in ("feature_maps", "gradient_maps") and not any(
                maps[other] == maps[tensor] for other in alive
            ):
                valid.discard(maps[tensor])


def copies_balance(out: Outcome) -> None:
    assert out.offload_bytes == out.prefetch_bytes
    assert out.pinned_bytes <= out.offload_bytes


def times_add_up(out: Outcome) -> None:
    view, program = out.whole, out.program
    for direction in ("offload", "prefetch"):
        assert out.time_ps >= sum(copy.duration_ps for copy in program.copies if copy.direction == direction)
    assert out.time_ps == view.time_ps == view.compute_ps + view.stall_ps
    assert view.usage.average_bytes <= view.usage.peak_bytes
    assert view.usage.peak_bytes == sum(view.usage.at_peak.values()) <= out.placement.high_water
    rows = list(out.per_layer())
    assert sum(row.forward_ps + row.recompute_ps + row.backward_ps for row in rows) == view.compute_ps
    assert sum(row.forward_stall_ps + row.backward_stall_ps for row in rows) == view.stall_ps
