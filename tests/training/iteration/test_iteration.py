"""Whole iterations by hand: three layers as in vDNN's Fig. 9, a fork and join as in its Fig. 3.

Every feature map has 1 MB and the link moves 1 GB/s, so a copy takes 1 ms. Times below are milliseconds.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from buddysim.training.driver import simulate_plan
from buddysim.training.iteration import memory_usage
from buddysim.training.iteration.allocators import POOL
from buddysim.training.iteration.build import build
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.schedule import schedule
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.outcome import IterationOutcome
from buddysim.training.schemes import _algorithms
from buddysim.training.schemes.vdnn import moved_inputs, offloaded
from tests.training.doubles import MS, Cost, Link, chain, machine

MB = 1_000_000


def outcome(network: Network, cost: Cost, policy: str = "all", **plan_options) -> IterationOutcome:
    options = TrainingOptions(memory_bytes=plan_options.pop("memory_bytes", None))
    algorithms = _algorithms.fastest(network, 1, cost)
    plan = Plan("test", algorithms, stash=moved_inputs(network, offloaded(network, policy)), **plan_options)
    return simulate_plan(network, 1, machine(), cost, plan, options)


def records(out: IterationOutcome) -> list[tuple[str, int, float, float]]:
    return sorted((r.stream, r.layer, r.start_ps / MS, r.end_ps / MS) for r in out.schedule.records)


def held(out: IterationOutcome) -> list[float]:
    return [total / MB for total in memory_usage.totals(memory_usage.levels(out.program))]


def three_layers() -> tuple[Network, Cost]:
    times = {
        ("conv1", "forward"): 0.6, ("conv2", "forward"): 2, ("conv3", "forward"): 1.5,
        ("conv3", "backward_data"): 0.5, ("conv3", "backward_filter"): 1,
        ("conv2", "backward_data"): 0.3, ("conv2", "backward_filter"): 0.3,
        ("conv1", "backward_data"): 9, ("conv1", "backward_filter"): 0.5,  # nobody wants dX of the first layer
    }  # fmt: skip
    return chain("ccc"), Cost({key: round(ms * MS) for key, ms in times.items()})


def test_three_layers_as_in_fig_9():
    """Layer 2 waits for layer 1's offload and layer 3 doesn't; layer 1's backward step waits for its prefetch."""
    out = outcome(*three_layers())
    assert records(out) == [
        ("compute", 1, 0, 0.6), ("compute", 1, 8, 8.5), ("compute", 2, 1, 3), ("compute", 2, 7, 7.6),
        ("compute", 3, 3, 4.5), ("compute", 3, 5.5, 7),
        ("offload", 1, 0, 1), ("offload", 2, 1, 2), ("offload", 3, 3, 4),
        ("prefetch", 1, 7, 8), ("prefetch", 2, 5.5, 6.5), ("prefetch", 3, 4.5, 5.5),
    ]  # fmt: skip
    assert [(s.layer, s.pass_, s.cause, s.copied_layer, s.start_ps / MS, s.ps / MS) for s in out.schedule.stalls] == [
        (1, "forward", "offload", 1, 0.6, 0.4),
        (3, "backward", "on-demand", 3, 4.5, 1),  # no backward step before it that could have fetched its X
        (2, "backward", "prefetch", 1, 7.6, 0.4),
    ]
    assert out.time_ps == 8.5 * MS
    assert out.all_layers.compute_ps + out.all_layers.stall_ps == out.time_ps
    assert held(out) == [1, 2, 2, 2, 4, 4, 2]
    assert out.offload_bytes == out.prefetch_bytes == out.pinned_bytes == 3 * MB
    assert [row.reuse_distance_ps for row in out.per_layer()][1:] == [7 * MS, 4 * MS, 0]


def test_memory_is_averaged_over_time_and_over_layers():
    usage = outcome(*three_layers()).all_layers.usage
    assert usage.peak_bytes == 4 * MB
    by_time = (2 * 1 + 2 * 2 + 2 * 1.5 + 4 * 2.5 + 4 * 1 + 2 * 0.5) / 8.5
    assert usage.time_mean_bytes == int(by_time * MB)
    assert usage.mean_over_steps_bytes == (2 + 2 + 2 + 4 + 4 + 2) * MB // 6
    at_peak = {kind: byte_count for kind, byte_count in usage.at_peak.items() if byte_count}
    assert at_peak == {"feature_maps": 2 * MB, "gradient_maps": 2 * MB}


def test_on_demand_puts_every_prefetch_in_front_of_its_reader():
    out = outcome(*three_layers(), prefetch="on-demand")
    assert out.stall_ps_by_cause() == {"offload": 0.4 * MS, "on-demand": 3 * MS}
    assert out.time_ps == (4.5 + 3 + 1.5 + 0.6 + 0.5) * MS
    assert held(out) == [1, 2, 2, 2, 3, 3, 2]


def test_without_overlap_every_copy_is_waited_for():
    network, cost = three_layers()
    out = outcome(network, cost, overlap=False)
    assert out.time_ps == (0.6 + 2 + 1.5 + 1.5 + 0.6 + 0.5 + 6 * 1) * MS
    assert out.stall_ps_by_cause() == {"copy-out": 3 * MS, "on-demand": 3 * MS}


def fork_and_join() -> tuple[Network, Cost]:
    """Return a network in which 1 feeds 2 and 3, 3 feeds 4, and 5 joins 2 and 4."""
    conv, join = frozenset({"x", "dy"}), frozenset({"dy"})
    layers = [Layer(0, "input", "input", (), (250_000,))]
    reads = {1: 0, 2: 1, 3: 1, 4: 3}
    layers += [Layer(i, f"conv{i}", "conv", (of,), (250_000,), backward_reads=conv) for i, of in reads.items()]
    layers += [Layer(5, "join5", "concat", (2, 4), (250_000,), backward_reads=join)]
    times = {(f"conv{i}", "forward"): 2 * MS for i in range(1, 5)}
    times |= {("join5", "forward"): 2 * MS, ("join5", "backward"): 2 * MS}
    return Network("fork", layers), Cost(times, default_ps=MS)


def test_fork_and_join_as_in_fig_3():
    """Layer 3, the last reader of layer 1's Y, offloads it; no backward step needs the inputs of layer 5."""
    network, cost = fork_and_join()
    assert network.refcount(1) == 2
    out = outcome(network, cost)
    copies = [record for record in records(out) if record[0] != "compute"]
    assert copies == [
        ("offload", 1, 0, 1), ("offload", 3, 4, 5), ("offload", 4, 6, 7),
        ("prefetch", 1, 16, 17),  # layer 2 has nothing to fetch and ends layer 3's search, so layer 2 launches it
        ("prefetch", 3, 12, 13), ("prefetch", 4, 10, 11),
    ]  # fmt: skip
    assert out.schedule.stalls == ()
    assert out.time_ps == (5 * 2 + 4 * 2 + 1) * MS
    assert held(out) == [1, 2, 2, 3, 3, 3, 4, 5, 4, 4, 2]


def test_the_search_stops_at_a_conv_with_nothing_to_fetch():
    """X of conv1 isn't prefetched during the pooling layer, as conv2 lies between (vDNN, Fig. 10)."""
    network = chain("ccp")
    out = outcome(network, Cost(default_ps=MS), "all")
    launched = {r.layer: r.start_ps for r in out.schedule.records if r.stream == "prefetch"}
    backward = {r.layer: r.start_ps for r in out.schedule.records if r.stream == "compute" and r.pass_ == "backward"}
    assert launched[3] == 3 * MS  # on demand: the iteration's backward part begins with its reader
    assert launched[2] == launched[3] + MS  # queued behind it, during the pooling layer
    assert launched[1] == backward[2]


def test_just_in_time_fetches_during_a_conv_and_never_during_a_pooling_layer():
    network = chain("crcrpcr")
    out = outcome(network, Cost(default_ps=2 * MS), prefetch="just-in-time")
    fetched_during = {
        r.layer: c.layer
        for r in out.schedule.records
        for c in out.schedule.records
        if r.stream == "prefetch" and c.stream == "compute" and c.start_ps <= r.start_ps < c.end_ps
    }
    # conv6's X is read after relu7 alone; pool5's comes during conv6; conv3's during relu4, after the pooling layer;
    # conv1's during conv3
    assert fetched_during == {6: 7, 5: 6, 3: 4, 1: 3}


def test_prefetch_without_free_memory_waits_a_step():
    network, cost = three_layers()
    roomy, tight = outcome(network, cost), outcome(network, cost, memory_bytes=3 * 1_000_448)
    assert roomy.fits
    assert tight.fits
    assert roomy.all_layers.usage.peak_bytes == 4 * MB
    assert tight.all_layers.usage.peak_bytes == 3 * MB
    assert tight.stall_ps_by_cause() == {"offload": 0.4 * MS, "on-demand": 3 * MS}
    assert len(tight.placement.deferred) == 2


def test_allocation_leaves_the_program_unchanged():
    network, cost = three_layers()
    plan = Plan("test", _algorithms.fastest(network, 1, cost), stash=moved_inputs(network, offloaded(network, "all")))
    program, again = (build(network, 1, cost, plan, Link()) for _ in range(2))
    allocation = POOL.allocate(program, 3 * 1_000_448)
    assert program == again != allocation.program
    launched = [
        {task: step.index for step in each.steps for task in step.tasks} for each in (program, allocation.program)
    ]
    later = {task: launched[1][task] - launched[0][task] for task in launched[0]}
    assert {task: steps for task, steps in later.items() if steps} == allocation.deferred
    assert POOL.allocate(allocation.program, 3 * 1_000_448).program == allocation.program
    with pytest.raises(FrozenInstanceError):
        program.steps[0].tasks = ()  # type: ignore[misc]


def test_out_of_memory_message_names_step_and_excess():
    network, cost = three_layers()
    out = outcome(network, cost, memory_bytes=2_500_000)
    assert not out.fits
    assert out.failure is not None
    assert (out.failure.layer, out.failure.pass_, out.failure.kind) == (3, "backward", "gradient_maps")
    aligned = 1_000_448
    assert out.failure.shortfall_bytes == 3 * aligned - 2_500_000
    assert out.out_of_memory.message == (
        "conv3 backward: 977.0 KiB requested (gradient maps), largest free block 487.4 KiB; "
        "peak exceeds the GPU by 1.4 MiB"
    )
    assert out.time_ps == 8.5 * MS  # as with enough memory


def test_pinned_memory_limit_of_the_host():
    network, cost = three_layers()
    plan = Plan("test", _algorithms.fastest(network, 1, cost), stash=moved_inputs(network, offloaded(network, "all")))
    out = simulate_plan(network, 1, machine(pinned=2_500_000), cost, plan, TrainingOptions())
    assert out.failure is not None
    assert (out.failure.memory, out.failure.layer, out.failure.shortfall_bytes) == ("host", 3, 500_000)
    assert out.out_of_memory.message == (
        "conv3 forward: 976.6 KiB requested (pinned host memory), 488.3 KiB free; peak exceeds the host by 488.3 KiB"
    )


def test_network_wide_allocation_holds_everything_throughout():
    network = chain("crpf")
    cost = Cost(workspaces={"conv1": 5 * MB})
    plan = Plan("base", _algorithms.fastest(network, 1, cost), layerwise=False)
    program = build(network, 1, cost, plan, Link())
    usage = memory_usage.usage(program, schedule(program).step_ps)
    # the input, conv1 with its ReLU, pool3; two gradient maps; one workspace
    assert usage.at_peak["feature_maps"] == 3 * MB
    assert usage.at_peak["gradient_maps"] == 2 * MB
    assert usage.at_peak["workspace"] == 5 * MB
    assert usage.time_mean_bytes == usage.peak_bytes == 10 * MB


@pytest.mark.parametrize(("batch", "missing"), [(1, 3 * 1_000_448 - 2_000_000)])
def test_network_wide_failure_counts_all_remaining_tensors_and_names_no_layer(batch: int, missing: int):
    network, cost = chain("c"), Cost()
    plan = Plan("base", _algorithms.fastest(network, batch, cost), layerwise=False)
    out = simulate_plan(network, batch, machine(2_000_000), cost, plan, TrainingOptions())
    assert out.failure is not None
    assert out.failure.shortfall_bytes == missing
    assert (out.failure.layer, out.out_of_memory and out.out_of_memory.layer) == (None, None)
    assert out.out_of_memory.message == f"network-wide allocation exceeds the GPU by {missing / 1024:.1f} KiB"
