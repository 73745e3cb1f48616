"""A record of a training step as a network: bytes to the unit under `eager`, layers for all other schemes."""

from __future__ import annotations

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.machine.training import TrainingMachine
from buddysim.training import schemes, simulate
from buddysim.training.autograd.dtypes import float32
from buddysim.training.cost import CostModel
from buddysim.training.cost.host_rates import HostRates
from buddysim.training.iteration import memory_usage
from buddysim.training.iteration.recorded_program import recorded_program
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.networks.torch_saves import saved_bytes
from buddysim.training.optimizers import optimizer_names
from buddysim.training.result import TrainingResult
from buddysim.training.schemes._links import link_rate

from .small_model import BATCH, FEATURES, HIDDEN, TOKENS, WORDS, recorded

MACHINE = "h100-sxm"
BLOCK = 4 * FEATURES**2 + 2 * FEATURES * HIDDEN + 2 * FEATURES
PARAMETERS = 3 * BLOCK + 2 * WORDS * FEATURES + FEATURES


@pytest.fixture(scope="module")
def network() -> RecordedNetwork:
    return recorded()


def run(network: RecordedNetwork, scheme: str, **options: object) -> TrainingResult:
    return simulate(network, BATCH, MACHINE, scheme, optimizer="none", **options)


def test_layers_have_the_parameters_and_operations_of_the_record(network: RecordedNetwork) -> None:
    assert network.parameters == PARAMETERS
    assert network.parameter_bytes() == 2 * PARAMETERS
    forward = [one for one in network.tape.operations if one.phase == "forward"]
    backward = [one for one in network.tape.operations if one.phase == "backward"]
    assert sum(layer.flops for layer in network.layers) == sum(one.flops for one in forward)
    assert [one for run in network.runs for one in run.forward] == forward
    assert sorted(one.index for run in network.runs for one in run.backward) == [one.index for one in backward]


def test_the_classifier_begins_with_the_last_product_with_a_weight(network: RecordedNetwork) -> None:
    assert [layer.name for layer in network.layers if layer.part == "classifier"] == [
        "head",
        "model",
    ]  # the model computes the loss


def test_a_module_that_alternates_with_its_children_has_several_layers(network: RecordedNetwork) -> None:
    names = [layer.name for layer in network.layers]
    assert names.count("layers.0.q") == 1
    assert [name for name in names if name.startswith("layers.0 ") or name == "layers.0"] == [
        "layers.0", "layers.0 (2)", "layers.0 (3)", "layers.0 (4)",
    ]  # fmt: skip
    by_name = {layer.name: layer for layer in network.layers}
    attention, q = by_name["layers.0"], by_name["layers.0.q"]
    assert {network.layers[index].name for index in attention.inputs} == {"layers.0.q", "layers.0.k", "layers.0.v"}
    assert set(network.saved_inputs(attention.index)) == set(attention.inputs)
    assert "y" in attention.backward_reads
    assert network.saved_inputs(q.index) == (by_name["layers.0.norm1"].index,)
    assert network.output_bytes(q.index, BATCH) == BATCH * TOKENS * FEATURES * 2


def test_a_norm_in_single_precision_saves_wide_copies(network: RecordedNetwork) -> None:
    norm = next(layer for layer in network.layers if layer.name == "layers.1.norm1")
    elements = BATCH * TOKENS * FEATURES
    rows = BATCH * TOKENS
    assert norm.saved_bytes(BATCH) == 4 * elements + 4 * rows + 2 * elements  # x, rsqrt, x normalised in 16 bits
    assert norm.backward_reads == {"dy"}


def test_what_layers_save_is_what_the_record_saves(network: RecordedNetwork) -> None:
    storages = network.tape.storages
    held = {one.storage for one in network.tape.saved if storages[one.storage].kind in ("activation", "temporary")}
    assert saved_bytes(network, BATCH) == sum(storages[number].bytes for number in held)


@pytest.mark.parametrize("optimizer", optimizer_names())
def test_eager_lives_as_the_record_to_the_byte(optimizer: str) -> None:
    network = recorded(2, optimizer)
    result = simulate(network, BATCH, MACHINE, "eager", optimizer=optimizer)
    assert result.counters["memory.peak_bytes"] == network.tape.peak_bytes()
    machine = TrainingMachine.load(MACHINE)
    program = recorded_program(
        network, CostModel.load(machine, precision="bf16"), link_rate(machine, None), HostRates.of(machine)
    )
    levels = memory_usage.totals(memory_usage.levels(program))
    live = list(network.tape.live_bytes())
    assert set(levels) <= set(live)
    assert max(levels) == max(live)
    state = sum(one.bytes for one in network.tape.storages if one.kind == "optimizer")
    assert (
        sum(program.tensors[n].byte_count for n in program.resident if program.tensors[n].kind == "optimizer_state")
        == state
    )


def test_adamw_holds_the_roots_of_all_weights_during_its_step() -> None:
    network = recorded(2, "adamw", float32)
    assert network.update().temporary_bytes == network.parameter_bytes()
    assert recorded(2, "sgd").update().temporary_bytes == 0


@pytest.mark.parametrize("optimizer", ["none", "adamw"])
def test_layers_without_a_scheme_are_as_long_and_nearly_as_large_as_eager(optimizer: str) -> None:
    network = recorded(3, optimizer)
    eager, layers = (
        simulate(network, BATCH, MACHINE, scheme, optimizer=optimizer) for scheme in ("eager", "vdnn-none-p")
    )
    assert layers.counters["time_ms"] == pytest.approx(eager.counters["time_ms"], rel=2e-3)  # a launch
    assert layers.counters["performance_vs_oracle"] == pytest.approx(1, rel=2e-3)
    assert layers.counters["memory.peak_bytes"] == pytest.approx(eager.counters["memory.peak_bytes"], rel=0.02)


@pytest.mark.parametrize("scheme", schemes.runnable_schemes(recorded=True))
def test_every_scheme_runs_or_says_why_it_has_nothing_to_do(network: RecordedNetwork, scheme: str) -> None:
    result = run(network, scheme, **({"synthetic_density": 0.5} if "synthetic_density" in _options(scheme) else {}))
    plan = result.outcome.plan
    does = plan.stash or plan.segments or plan.offload_saved_tensors or plan.as_recorded
    neutral = scheme.startswith(("vdnn-none", "vdnn-dyn")) or scheme == "gist-base"
    assert does or neutral or result.counters["nothing_to_do"]
    assert result.counters["memory.peak_bytes"] > 0
    if scheme.startswith(("vdnn-conv", "cswap")):
        assert result.counters["nothing_to_do"] == "nothing to offload: no CONV layers"


def _options(scheme: str) -> dict[str, object]:
    return getattr(schemes.REGISTRY.find(scheme), "OPTIONS", {})


def test_schemes_save_memory_at_layer_granularity(network: RecordedNetwork) -> None:
    peak = {
        name: run(network, name).counters["memory.peak_bytes"]
        for name in ("eager", "vdnn-all-p", "activation-checkpointing", "save-on-cpu")
    }
    assert max(peak, key=lambda name: peak[name]) == "eager"


def test_networks_of_today_are_not_allocated_network_wide(network: RecordedNetwork) -> None:
    with pytest.raises(BuddysimError, match=r"^scheme baseline-p: allocates the papers' networks: expected eager"):
        run(network, "baseline-p")
    assert "baseline-p" not in schemes.runnable_schemes(recorded=True)


def test_the_gpu_and_the_recorded_batch_are_needed(network: RecordedNetwork) -> None:
    with pytest.raises(BuddysimError, match=r"^machine: not named: expected the GPU that trains small"):
        simulate(network, BATCH)
    with pytest.raises(BuddysimError, match=r"^batch 3: small was recorded with batch 2"):
        simulate(network, 3, MACHINE)
    assert simulate(network, BATCH, MACHINE).scheme == "eager"
