"""The search for the largest batch equals a trial of every batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.machine.training import TrainingMachine
from buddysim.training import schemes
from buddysim.training.cost import CostModel
from buddysim.training.driver import simulate, simulate_plan
from buddysim.training.fit_check import FitChecks
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.named_network import load_network
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.request import make_options
from buddysim.training.result import oom_counters
from buddysim.training.search import largest_batch
from tests.training.doubles import Algorithm, Cost, machine
from tests.training.random_networks import costs, networks

SCHEMES = (
    "baseline-m", "baseline-p", "vdnn-all-m", "vdnn-all-p", "vdnn-conv-p", "vdnn-dyn", "cdma-zv",
    "save-on-cpu", "activation-checkpointing",
)  # fmt: skip


@dataclass
class Growing(Cost):
    """A cost whose algorithms have workspace in bytes per sample, and are offered up to a batch."""

    offered: dict[str, int] = field(default_factory=dict)

    def conv_algorithms(self, layer: Layer, batch: int, pass_: str) -> tuple[Algorithm, ...]:
        fast, *slow = super().conv_algorithms(layer, batch, pass_)
        if not slow:
            return (fast,)
        if batch > self.offered[layer.name]:
            return tuple(slow)
        return (Algorithm(fast.name, fast.workspace_bytes * batch, fast.time_ps), *slow)


def fits(network: Network, batch: int, cost: Cost, scheme: str, options: TrainingOptions, pinned: int) -> bool:
    """Return whether a simulation fits."""
    double = machine(pinned=pinned)
    plan = schemes.REGISTRY.find(scheme).plan(network, batch, double, cost, scheme, options)
    return simulate_plan(network, batch, double, cost, plan, options).fits  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_larger_batch_fits(data: st.DataObject):
    network = data.draw(networks())
    base_cost = data.draw(costs(network))
    last = {name: data.draw(st.integers(0, 20)) for name in base_cost.workspaces}
    cost = Growing(base_cost.times, workspaces=base_cost.workspaces, offered=last)
    scheme = data.draw(st.sampled_from(SCHEMES))
    extra = {"synthetic_density": 0.5} if scheme == "cdma-zv" else {}
    options = TrainingOptions(memory_bytes=data.draw(st.integers(8, 200)) * 1024, extra=extra)
    pinned, limit = data.draw(st.sampled_from([62 << 30, 100 << 10])), 20
    checks = FitChecks(network, machine(pinned=pinned), cost, scheme, options)  # type: ignore[arg-type]
    largest = largest_batch(checks, limit)
    fitting = [
        batch for batch in range(max(largest, 1), limit + 1) if fits(network, batch, cost, scheme, options, pinned)
    ]
    assert fitting == ([largest] if largest else [])


@pytest.mark.parametrize("scheme", ["vdnn-dyn", "cdma-bw", "cdma"])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_fits_as_scheme_fits_whenever_the_scheme_does(scheme: str, data: st.DataObject):
    network = data.draw(networks())
    cost = data.draw(costs(network))
    extra = {"synthetic_density": 0.5} if scheme != "vdnn-dyn" else {}
    options = TrainingOptions(memory_bytes=data.draw(st.integers(8, 200)) * 1024, extra=extra)
    checks = FitChecks(network, machine(), cost, scheme, options)  # type: ignore[arg-type]
    assert checks.scheme != scheme
    for batch in (1, 5, 20):
        assert checks.check(batch).fits == fits(network, batch, cost, scheme, options, 62 << 30)


def titan_x(network: str, scheme: str) -> FitChecks:
    titan = TrainingMachine.load("titan-x")
    return FitChecks(load_network(network), titan, CostModel.load(titan, "cudnn4"), scheme, make_options())


@pytest.mark.parametrize("scheme", ["oracle"])
def test_largest_batch_without_a_bound_is_the_limit(scheme: str):
    assert largest_batch(titan_x("nin-cifar10", scheme), 300) == 300


@pytest.mark.parametrize("scheme", ["baseline-p", "vdnn-all-p", "vdnn-conv-p", "vdnn-dyn"])
def test_vgg_on_a_titan_x(scheme: str):
    """all(p) selects FFTs beyond the available memory; from some batch on they aren't offered.

    The batches behind the largest are tried one by one, those far from it in steps.
    """
    batch = largest_batch(titan_x("vgg11", scheme))
    every = titan_x("vgg11", scheme)
    assert every.check(batch).fits
    assert not any(
        every.check(batch).fits for batch in (*range(batch + 1, batch + 32), *range(batch + 32, batch + 400, 24))
    )


@pytest.mark.parametrize("scheme", ["baseline-p", "vdnn-all-m", "vdnn-dyn", "cdma-zv"])
def test_largest_batch_tries_few_batches(scheme: str):
    checks = titan_x("resnet110", scheme)
    assert largest_batch(checks) > 300
    assert len(checks._known) <= 8


def test_half_precision_allows_a_larger_batch():
    v100 = TrainingMachine.load("v100")
    largest = {}
    for precision in ("fp32", "fp16"):
        cost, options = CostModel.load(v100, precision=precision), make_options(precision=precision)
        largest[precision] = largest_batch(FitChecks(load_network("resnet50"), v100, cost, "vdnn-none-m", options))
        assert simulate("resnet50", largest[precision], v100, "vdnn-none-m", options=options).counters["fits"]
        larger = simulate("resnet50", largest[precision] + 1, v100, "vdnn-none-m", options=options)
        assert not larger.counters["fits"]
    assert largest["fp16"] > 1.8 * largest["fp32"]


@pytest.mark.parametrize("scheme", ["baseline-p", "vdnn-all-m", "vdnn-conv-p", "vdnn-dyn", "cdma-zv"])
@pytest.mark.parametrize("pinned", ["62 GiB", "1 GiB"])
def test_out_of_memory_of_a_check_agrees_with_the_simulation(scheme: str, pinned: str):
    titan = TrainingMachine.load("titan-x").with_overrides({"training.max_pinned_memory": pinned}, "test")
    cost = CostModel.load(titan, "cudnn4")
    checks = FitChecks(load_network("vgg11"), titan, cost, scheme, make_options())
    larger = largest_batch(checks) + 1
    simulated = simulate("vgg11", larger, titan, scheme, conv_library="cudnn4").counters
    missing = {name: value for name, value in simulated.items() if name.startswith("oom.")}
    assert missing == oom_counters(checks.out_of_memory(larger))
    assert missing["oom.message"]
    assert checks.out_of_memory(larger - 1) is None
