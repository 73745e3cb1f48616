"""Plans as files: every scheme's, and random ones, read back as the same decisions and results; bad ones refused."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.machine.training import TrainingMachine
from buddysim.training import schemes
from buddysim.training.autograd.offload import OffloadSettings
from buddysim.training.cost import ConvAlgorithm, CostModel
from buddysim.training.driver import simulate, simulate_plan
from buddysim.training.iteration.plan import Plan
from buddysim.training.networks.graph import Network
from buddysim.training.options.block_range import BlockRange
from buddysim.training.options.checkpoint_rule import CheckpointRule, OffloadedStores, StoredOperators
from buddysim.training.options.compression_rule import CompressionRule
from buddysim.training.options.offload_rule import OffloadRule
from buddysim.training.options.optimizer_offload import DEVICES, LIBRARIES, OptimizerOffload
from buddysim.training.options.saving_rules import SavingRules
from buddysim.training.options.weights_offload import WeightsOffload
from buddysim.training.plans.plan_file import parse_plan, plan_text
from buddysim.training.recorded_step.from_config import network_from_config
from buddysim.training.request import TrainingRequest, make_options
from tests.training.random_networks import Cost, networks
from tests.training.random_plans import plans

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 500,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
}
OPTIONS = {
    "checkpoint": ["block", "every:2", "segments:2", "selective", "operators:mm"],
    "offload_modules": ["mlp,self_attn"],
    "update_order": ["deepspeed"],
    "optimizer_device": ["nvme"],
    "weights_ahead": [0, 3],
    "gist_allocator": ["dynamic", "investigation"],
}


def decisions(plan: Plan) -> Plan:
    """A plan without its name and texts; rules that do nothing are none."""
    saving = None if plan.saving == SavingRules() else plan.saving
    below = None if plan.footprint_baseline is None else decisions(plan.footprint_baseline)
    return replace(
        plan, scheme="", notes=(), assumptions={}, saving=saving,
        stash={layer: one for layer, one in plan.stash.items() if one.encoding or one.offload},
        footprint_baseline=below, nothing_to_do="",
        offload_saved_tensors={layer: copied for layer, copied in plan.offload_saved_tensors.items() if copied},
        algorithms={
            layer: {
                pass_: ConvAlgorithm(one.name, one.workspace_bytes, one.time_ps) for pass_, one in passes.items()
            }
            for layer, passes in plan.algorithms.items()
            if passes
        },
    )  # fmt: skip


def planned(network: Network, batch: int, scheme: str, machine: TrainingMachine, cost: CostModel, **extra: Any) -> Plan:
    """What a scheme decides."""
    options = make_options(optimizer="adamw", **extra)
    plan: Plan = schemes.REGISTRY.find(scheme).plan(network, batch, machine, cost, scheme, options)
    return plan


@pytest.mark.parametrize("name", ["alexnet", "config"])
def test_every_scheme_reads_back_as_it_decided(name: str):
    network: Any = network_from_config(CONFIG, sequence=32) if name == "config" else name
    request = TrainingRequest.of(network=network, batch=2, machine="a100-80").resolved()
    machine, cost = request.load_machine(), request.cost_model()
    at = request.load_network().at(2, "adamw")
    for scheme in schemes.runnable_schemes(["buddy_ratio"], at.recorded):
        needed = {"buddy_ratio": 1.5} if schemes.required_options(scheme) else {}
        own = getattr(schemes.REGISTRY.find(scheme), "OPTIONS", {})
        choices: list[dict[str, Any]] = [{}]
        choices += [{option: value} for option, values in OPTIONS.items() if option in own for value in values]
        for choice in choices:
            try:
                plan = planned(at, 2, scheme, machine, cost, **needed, **choice)
            except BuddysimError:  # of the network's, as selective of alexnet
                continue
            text = plan_text(plan, at)
            read = parse_plan(text, at, "plan")
            assert decisions(read) == decisions(plan), (scheme, choice)
            assert read.nothing_to_do == plan.nothing_to_do
            assert plan_text(replace(read, scheme=scheme), at) == text


RANGES = st.builds(
    lambda one, other, modules: BlockRange(min(one, other), max(one, other), modules),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([(), ("mlp",), ("mlp", "self_attn")]),
)


@st.composite
def rules(draw: st.DrawFn) -> SavingRules:
    """Rules of a model of four blocks."""
    checkpoints, start = [], 0
    while start < 4:
        last = draw(st.integers(start, 3))
        if draw(st.booleans()):
            stored = draw(
                st.none() | st.builds(StoredOperators, st.sampled_from([("mm",), ("mm", "bmm")]), st.booleans())
            )
            together = draw(st.integers(1, 2))
            results = st.lists(st.tuples(st.integers(start, last), st.integers(0, 9)), max_size=3).map(tuple)
            on_host = st.none() | st.builds(OffloadedStores, results, st.integers(0, 9), st.integers(0, 9))
            offloaded = draw(on_host) if stored and together == 1 else None
            checkpoints.append(CheckpointRule(start, last, together, stored, draw(st.booleans()), offloaded))
        start = last + 1
    copies = st.builds(OffloadSettings, st.integers(0, 2), st.integers(1, 6), st.integers(0, 5000), st.booleans())
    ranges = draw(st.lists(RANGES, max_size=2).map(tuple))
    offload = draw(
        st.none() | st.builds(OffloadRule, copies, st.just(ranges), st.just(False) if ranges else st.booleans())
    )
    compression = draw(
        st.none() | st.builds(CompressionRule, st.sampled_from([8, 10, 16]), st.lists(RANGES, max_size=2).map(tuple))
    )
    optimizer = draw(
        st.none()
        | st.builds(
            OptimizerOffload, st.sampled_from(LIBRARIES), st.booleans(), st.booleans(), st.sampled_from(DEVICES)
        )
    )
    weights = draw(st.none() | st.builds(WeightsOffload, st.integers(0, 3), st.sampled_from(DEVICES)))
    return SavingRules(tuple(checkpoints), offload, compression, optimizer, weights)


@functools.cache
def small() -> Any:
    """The network at a batch of one."""
    return network_from_config(CONFIG, sequence=8).at(1, "adamw")


@settings(max_examples=60, deadline=None)
@given(rules())
def test_any_rules_read_back(saving: SavingRules):
    at = small()
    plan = Plan("any", {}, as_recorded=True, saving=saving)
    read = parse_plan(plan_text(plan, at), at, "plan").saving
    assert (read or SavingRules()) == saving


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(rules())
def test_any_rules_give_the_same_results_from_a_file(saving: SavingRules):
    request = TrainingRequest.of(network=network_from_config(CONFIG, sequence=8), batch=1, machine="a100-80").resolved()
    machine, cost = request.load_machine(), request.cost_model()
    at = request.load_network().at(1, "adamw")
    plan = Plan("any", {}, as_recorded=True, saving=saving)
    read = parse_plan(plan_text(plan, at), at, "plan")
    outcomes = [simulate_plan(at, 1, machine, cost, one, request.options) for one in (plan, read)]
    assert outcomes[0].time_ps == outcomes[1].time_ps
    assert outcomes[0].placement.high_water == outcomes[1].placement.high_water
    assert outcomes[0].pinned_bytes == outcomes[1].pinned_bytes


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_decisions_about_layers_read_back(data: st.DataObject):
    network = data.draw(networks())
    plan = data.draw(plans(network, Cost()))
    assert decisions(parse_plan(plan_text(plan, network), network, "plan")) == decisions(plan)


BAD = {
    'recorded = true\n[[blocks]]\nrange = "0-9"\nsaved = "keep"': "blocks[0].range: expected two numbers",
    'recorded = true\n[[blocks]]\nrange = "2-1"\nsaved = "keep"': "blocks[0].range: expected two numbers",
    'recorded = true\n[[blocks]]\nrange = "0"\nsaved = "drop"': "blocks[0].saved: expected one of keep",
    'recorded = true\n[[blocks]]\nrange = "0"\nsaved = "keep"\nx = 1': "blocks[0].x: expected one of range, saved",
    'recorded = true\n[[blocks]]\nsaved = "keep"': "blocks[0].range is missing",
    'recorded = true\n[[blocks]]\nrange = "0-1"\nsaved = "recompute"\n'
    '[[blocks]]\nrange = "1"\nsaved = "recompute"': "block 1 is computed again by two tables",
    "recorded = true\n[copies]\nstreams = 3": "copies.streams: expected at most 2, got 3",
    "recorded = true\n[copies]\nstreams = 1": "copies: no block is offloaded",
    'recorded = true\n[compression]\nbits = 9\nof = "model"': "compression.bits: expected one of 16, 10, 8, got 9",
    'recorded = true\n[optimizer]\norder = "apex"': "optimizer.order: expected one of torchao, deepspeed, got 'apex'",
    'recorded = true\n[weights]\nahead = "1"': "weights.ahead: expected an integer, got '1'",
    'recorded = true\nlayer = "x"': "layer: expected one of scheme, network",
    "recorded = 1": "recorded: expected False, got 1",
    "blocks = [": "not valid TOML",
    '[[layer]]\nname = "conv9"': "layer[0].name: expected a layer of the network, got 'conv9'",
    "segments = [[3, 2]]": "segments[0]: expected first and last layer",
    "memory_ratio = 0": "memory_ratio: expected at least 0.01, got 0",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_plan_is_one_line(text: str, tmp_path: Path):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(BuddysimError) as caught:
        simulate(network_from_config(CONFIG, sequence=8), 1, "a100-80", "plan", plan=str(path))
    assert BAD[text] in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_plan_of_blocks_needs_a_recorded_network(tmp_path: Path):
    path = tmp_path / "plan.toml"
    path.write_text("recorded = true")
    with pytest.raises(BuddysimError, match="alexnet isn't recorded"):
        simulate("alexnet", 1, "titan-x", "plan", plan=str(path))


def test_the_command_line_writes_and_reads_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = str(tmp_path / "plan.toml")
    base = ["train", "alexnet", "--batch", "16", "--machine", "titan-x"]
    assert main([*base, "--scheme", "vdnn-all-m", "--save-plan", path]) == 0
    assert main([*base, "--plan", path]) == 0
    printed = capsys.readouterr().out
    assert "plan" in printed
    whole, own = (simulate("alexnet", 16, "titan-x", name, plan=path).counters for name in ("vdnn-all-m", "plan"))
    assert {**whole, "scheme": ""} == {**own, "scheme": ""}
    assert main([*base, "--save-plan", path]) == 2
    assert "expected one" in capsys.readouterr().err
