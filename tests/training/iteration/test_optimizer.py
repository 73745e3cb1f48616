"""Weight updates: state and time by hand, state against PyTorch's, and searches that include it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training.driver import simulate_outcome, simulate_plan
from buddysim.training.fit_check import FitChecks
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.networks.graph import Network
from buddysim.training.optimizers import find_optimizer, optimizer_names
from buddysim.training.outcome import IterationOutcome
from buddysim.training.request import make_options
from buddysim.training.schemes import _algorithms
from buddysim.training.search import largest_batch
from tests.training.doubles import MS, Cost, chain, machine

MB = 1_000_000
#: 1 MB of weights each; the double's memory gives an activation 168 GB/s.
WEIGHTS = 250_000


def outcome(optimizer: str) -> IterationOutcome:
    plain = chain("cc")
    network = Network("weights", [replace(layer, parameters=WEIGHTS * bool(layer.index)) for layer in plain.layers])
    cost = Cost(default_ps=MS)
    plan = Plan("test", _algorithms.fastest(network, 1, cost))
    return simulate_plan(network, 1, machine(), cost, plan, TrainingOptions(optimizer=optimizer))


@pytest.mark.parametrize(("optimizer", "state_mb", "moved_mb"), [("sgd", 0, 3), ("momentum", 1, 5), ("adam", 2, 7)])
def test_an_update_by_hand(optimizer: str, state_mb: int, moved_mb: int):
    out, without = outcome(optimizer), outcome("none")
    assert without.pass_ps("update") == 0
    assert [(step.layer, step.pass_) for step in out.program.steps[-2:]] == [(1, "update"), (2, "update")]
    each = round(moved_mb * MB * 10**12 / 168e9)
    assert out.pass_ps("update") == 2 * each == out.time_ps - without.time_ps
    assert out.all_layers.usage.peak_bytes == without.all_layers.usage.peak_bytes + 2 * state_mb * MB
    assert out.all_layers.usage.at_peak["optimizer_state"] == 2 * state_mb * MB
    assert [row.update_ps for row in out.per_layer()] == [0, each, each]


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw"])
def test_state_is_pytorchs(name: str):
    """The state is all but the count of Adam's steps: 4 bytes per parameter tensor, in host memory."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 5, 3), torch.nn.BatchNorm2d(5), torch.nn.Flatten(), torch.nn.Linear(180, 7)
    )
    parameters = list(model.parameters())
    made = {
        "sgd": lambda: torch.optim.SGD(parameters, lr=0.1),
        "momentum": lambda: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
        "adam": lambda: torch.optim.Adam(parameters),
        "adamw": lambda: torch.optim.AdamW(parameters),
    }[name]()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.ones(2, 3, 8, 8)).float().square().sum()
    loss.backward()
    made.step()
    state = [
        value
        for tensors in made.state.values()
        for key, value in tensors.items()
        if value is not None and key != "step"
    ]
    held = find_optimizer(name)
    assert held is not None
    count = sum(parameter.numel() for parameter in parameters)
    assert sum(value.numel() * value.element_size() for value in state) == held.state_bytes(count)
    # With automatic casting too, weights and their gradients stay single precision: they are the master weights.
    assert {value.dtype for p in parameters for value in (p, p.grad)} == {torch.float32}


def test_optimizer_state_reduces_the_largest_batch():
    network, cost = chain("ccp", elements=50_000), Cost()
    network = Network("weights", [replace(layer, parameters=WEIGHTS * bool(layer.index)) for layer in network.layers])
    small = machine(14 * MB)
    largest = {}
    for name in optimizer_names():
        checks = FitChecks(network, small, cost, "vdnn-all-m", TrainingOptions(optimizer=name))  # type: ignore[arg-type]
        largest[name] = largest_batch(checks)
        assert checks.check(largest[name]).fits
        assert not any(checks.check(batch).fits for batch in range(largest[name] + 1, 30))
    assert largest["none"] == largest["sgd"] > largest["momentum"] > largest["adam"] > 0


def test_the_oracle_updates_too():
    out = simulate_outcome("alexnet", 64, "titan-x", "oracle", optimizer="adam")
    assert out.all_layers.performance_vs_oracle == 1
    assert out.baseline.usage.at_peak["optimizer_state"] == 8 * out.network.parameters


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(
        BuddysimError,
        match=r"optimizer 'adma': expected one of none, sgd, .*, adamw-8bit, adamw-4bit \(nearest: adam\)",
    ):
        make_options(optimizer="adma")
