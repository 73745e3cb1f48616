"""Laws of the host's schemes: faster parts never slow an iteration down, bytes out and back, memory in flight."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.machine.training import TrainingMachine
from buddysim.machine.training_table import HostLinkConfig
from buddysim.training import schemes
from buddysim.training.cost import CostModel
from buddysim.training.cost.host_rates import HostRates
from buddysim.training.iteration.build import build
from buddysim.training.iteration.memory_usage import FailedRequest
from buddysim.training.iteration.recorded_program import recorded_program
from buddysim.training.iteration.schedule import schedule
from buddysim.training.named_network import load_network
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.options.checkpoint_rule import CheckpointRule
from buddysim.training.options.optimizer_offload import DEVICES, LIBRARIES, OptimizerOffload
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.options.weights_offload import WeightsOffload
from buddysim.training.outcome import OutOfMemory
from buddysim.training.request import make_options
from tests.training.host.test_recorded_host import ALL, CONFIG, moved, named, network_from_config

RULES = st.builds(
    lambda first, recomputes, optimizer, weights: SavingRules(
        (CheckpointRule(first, 2),) if recomputes else (), optimizer=optimizer, weights=weights
    ),
    st.integers(0, 2),
    st.booleans(),
    st.builds(OptimizerOffload, st.sampled_from(LIBRARIES), st.booleans(), st.booleans(), st.sampled_from(DEVICES)),
    st.none() | st.builds(WeightsOffload, st.integers(0, 3), st.sampled_from(DEVICES)),
)
FACTORS = (1, 2, 5, 20)
MB = 10**6


@functools.cache
def cost() -> CostModel:
    """Layer times of an A100."""
    return CostModel.load(TrainingMachine.load("a100-80"), None, None, "bf16")


def recorded(rules: SavingRules) -> RecordedNetwork:
    """A small Llama under rules."""
    network: RecordedNetwork = network_from_config(CONFIG, sequence=16)._recorded(1, "adamw", rules)
    return network


def timed(network: RecordedNetwork, link: int, update: int, nvme: int) -> int:
    """Time of an iteration, by rates in MB/s."""
    both = HostLinkConfig(d2h_bandwidth=f"{link} MB/s", h2d_bandwidth=f"{link} MB/s", latency="0 ns")
    host = HostRates(update * MB, nvme * MB, nvme * MB)
    return schedule(recorded_program(network, cost(), both, host)).time_ps


@settings(max_examples=6, deadline=None)
@given(RULES)
def test_a_faster_link_host_or_drive_is_never_slower(rules: SavingRules):
    network = recorded(rules)
    for times in (
        [timed(network, 100 * factor, 100, 100) for factor in FACTORS],
        [timed(network, 100, 100 * factor, 100) for factor in FACTORS],
        [timed(network, 100, 100, 100 * factor) for factor in FACTORS],
    ):
        assert times == sorted(times, reverse=True)


@settings(max_examples=8, deadline=None)
@given(RULES)
def test_gradients_go_down_once_and_weights_come_up(rules: SavingRules):
    tape = recorded(rules).tape
    down, up = moved(named(tape, "offload")), moved(named(tape, "prefetch"))
    assert down
    if rules.weights is None:
        assert down == up
    else:
        assert up == 2 * (2 * ALL - (2 * 500 * 64 + 64))  # those outside of blocks once
    for one in tape.host_buffers:
        assert one.lasts


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 3))
def test_weights_on_the_gpu_are_those_of_blocks_in_flight(ahead: int):
    rules = SavingRules(weights=WeightsOffload(ahead), optimizer=OptimizerOffload())
    tape = recorded(rules).tape
    rest, block = 2 * (2 * 500 * 64 + 64), 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64)
    live = peak = 0
    for event in tape.events:
        storage: Any = getattr(event, "storage", None)
        if storage is not None and tape.storages[storage].kind == "gathered":
            live += event.bytes if tape.events[tape.storages[storage].allocated] is event else -event.bytes  # type: ignore[union-attr]
            peak = max(peak, live)
    assert peak == rest + block * min(3, 1 + ahead)


@pytest.mark.parametrize("scheme", ["offload-optimizer", "offload-optimizer-delayed", "offload-weights"])
@pytest.mark.parametrize("name", ["alexnet", "resnet50"])
def test_described_networks_move_every_weight(name: str, scheme: str):
    network = load_network(name)
    machine = TrainingMachine.load("a100-80")
    times = CostModel.load(machine, None, None, "fp32")
    options = make_options(optimizer="adam")
    plan = schemes.REGISTRY.find(scheme).plan(network, 4, machine, times, scheme, options)
    spent = []
    for rate in ("1 GB/s", "10 GB/s", "100 GB/s"):
        link = HostLinkConfig(d2h_bandwidth=rate, h2d_bandwidth=rate, latency="0 ns")
        program = build(network, 4, times, plan, link, "adam")
        sizes = {
            stream: sum(one.byte_count for one in program.tasks if one.stream == stream)
            for stream in ("offload", "prefetch")
        }
        weights = network.parameter_bytes()
        assert sizes["offload"] == weights
        assert sizes["prefetch"] == (2 if scheme == "offload-weights" else 1) * weights
        assert not [one for one in program.tensors if one.kind == "optimizer_state"]
        assert program.host_bytes >= 4 * weights
        spent.append(schedule(program).time_ps)
    assert spent == sorted(spent, reverse=True)


@pytest.mark.parametrize("rate", [1, 20, 400])
@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_described_networks_fetch_weights_ahead(ahead: int, rate: int):
    """The forward pass on the clock: a layer's copy begins with the pass of the layer `ahead` before it."""
    network, machine = load_network("alexnet"), TrainingMachine.load("a100-80")
    times = CostModel.load(machine, None, None, "fp32")
    options = make_options(optimizer="adam", weights_ahead=ahead)
    plan = schemes.REGISTRY.find("offload-weights").plan(network, 64, machine, times, "offload-weights", options)
    link = HostLinkConfig(d2h_bandwidth=f"{rate} GB/s", h2d_bandwidth=f"{rate} GB/s", latency="0 ns")
    program = build(network, 64, times, plan, link, "adam")
    timed = schedule(program)
    copies = {layer.index: network.layer_parameter_bytes(layer.index) * 1000 // rate for layer in network.layers}
    clock, starts, fetched = 0, [], 0
    for step in program.steps[: program.first_backward]:
        if copies[step.layer]:
            starts.append(clock)
            fetched = max(fetched, starts[max(0, len(starts) - 1 - ahead)]) + copies[step.layer]
            clock = max(clock, fetched)
        clock += step.compute_ps
    assert timed.step_end_ps[program.first_backward - 1] == pytest.approx(clock, abs=20)
    held = [one for one in program.tensors if one.kind == "weights"]
    assert sum(one.byte_count for one in held) == 2 * network.parameter_bytes()
    at_once = max(
        sum(one.byte_count for one in held if program.lives[one.number][0] <= step <= program.lives[one.number][1])
        for step in range(len(program.steps))
    )
    sizes = [network.layer_parameter_bytes(one.index) for one in network.layers if one.parameters]
    assert at_once == max(sum(sizes[number : number + 1 + ahead]) for number in range(len(sizes)))


def test_a_shortage_of_host_memory_names_the_host() -> None:
    failure = FailedRequest("host", None, "resident", "weights", 3 * 2**30, 2**30, 2**30, 2 * 2**30)
    assert OutOfMemory(failure, None, 0).message == "weights exceeds pinned host memory by 2.00 GiB"
