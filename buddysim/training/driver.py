"""Simulates one training iteration under a scheme."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from buddysim.base.errors import BuddysimError
from buddysim.base.garbage import collection_paused
from buddysim.base.signature import show_options
from buddysim.training import schemes
from buddysim.training.fit_check import allocate_tensors, capacity_bytes
from buddysim.training.iteration import memory_usage
from buddysim.training.iteration.build import build
from buddysim.training.iteration.pinned import host_pinned
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.program import Program
from buddysim.training.iteration.schedule import IterationSchedule, schedule
from buddysim.training.make_plan import make_plan
from buddysim.training.networks.graph import Network
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.outcome import Baseline, IterationOutcome
from buddysim.training.request import TrainingRequest, request_options, whole
from buddysim.training.result import TrainingResult
from buddysim.training.schemes import baseline as network_wide
from buddysim.training.schemes import eager
from buddysim.training.schemes._links import link_rate

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.machine.training_table import HostLinkConfig
    from buddysim.training.cost import CostModel


def simulate_outcome(
    network: Network | str | os.PathLike[str] | Mapping[str, Any],
    batch: int,
    machine: TrainingMachine | str | None,
    scheme: str | None,
    *,
    options: TrainingOptions | None = None,
    cost: CostModel | None = None,
    **keywords: Any,
) -> IterationOutcome:
    """One iteration, as the raw object.

    Parameters
    ----------
    network, batch, machine, scheme, keywords : fields of a `TrainingRequest`, those of its options, and options that
        schemes declare
    options : the request's options, instead of keywords
    cost : layer times; None loads the model of the machine
    """
    request = TrainingRequest.of(
        network=network, batch=whole("batch", batch), machine=machine, scheme=scheme, options=options, **keywords
    )
    return simulate_request(request, cost)


@collection_paused()
def simulate_request(request: TrainingRequest, cost: CostModel | None = None) -> IterationOutcome:
    """Simulate the iteration of a request; `cost` are its layer times, None: loaded."""
    request = request.resolved()
    network, machine, batch = request.load_network(), request.load_machine(), request.batch
    assert batch is not None
    options, cost = request.options, cost or request.cost_model()
    precision = request.precision()
    if cost.precision.name != precision:
        raise BuddysimError(f"precision {precision}: expected {cost.precision.name}, that of the layer times given")
    network = network.at(batch, options.optimizer or "none").with_element_bytes(cost.precision.element_bytes)
    plan = make_plan(network, batch, machine, cost, request.scheme or "", options)
    return simulate_plan(network, batch, machine, cost, plan, options)


@collection_paused()
def simulate(
    network: Network | str | os.PathLike[str] | Mapping[str, Any],
    batch: int,
    machine: TrainingMachine | str | None = TrainingRequest.machine,
    scheme: str | None = TrainingRequest.scheme,
    **keywords: Any,
) -> TrainingResult:
    """Simulate one training iteration: flat counters, one row per layer, provenance."""
    return TrainingResult.from_outcome(simulate_outcome(network, batch, machine, scheme, **keywords))


#: Times are 64-bit picoseconds, 106 days at most.
_LONGEST_PS = 2**63 - 1


@collection_paused()
def simulate_plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, plan: Plan, options: TrainingOptions,
    program: Program | None = None,
) -> IterationOutcome:  # fmt: skip
    """The iteration that a scheme planned; `program` is what `build` makes of the plan, where that is at hand."""
    recorded = plan.recorded(network)
    if program is None:
        program = build(recorded, batch, cost, plan, link_rate(machine, options.link), options.optimizer)
    placement, failure = allocate_tensors(program, plan, recorded, machine, options)
    timed = schedule(placement.program)
    if timed.time_ps > _LONGEST_PS:
        days = timed.time_ps / 86400e12
        raise BuddysimError(f"batch {batch}: an iteration takes {days:.0f} days: expected a smaller one")
    pinned, _ = host_pinned(placement.program)
    capacity = capacity_bytes(plan, network, machine, options)
    if isinstance(network, RecordedNetwork) and plan.scheme == "eager" and placement.program is program:
        _EAGER.setdefault(network, {})[id(cost)] = _baseline_of(program, timed)
    return IterationOutcome(
        plan.scheme, recorded.in_place_only(plan.in_place), batch, machine, cost, options, plan, timed, placement,
        capacity, failure, pinned, baseline(network, batch, machine, cost, options),
        _reference_bytes(network, batch, cost, plan, link_rate(machine, options.link)),
    )  # fmt: skip


def _reference_bytes(network: Network, batch: int, cost: CostModel, plan: Plan, link: HostLinkConfig) -> int | None:
    """Footprint of the plan that this one is compared with, in bytes of feature maps; None without one."""
    reference = plan.footprint_baseline
    if reference is None:
        return None
    return reference.allocator.min_bytes(build(network, batch, cost, reference, link), memory_usage.is_map_tensor)


def baseline(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, options: TrainingOptions
) -> Baseline:
    """The network-wide allocation with the fastest algorithms, and the oracle's time; eager of a recorded network."""
    if isinstance(network, RecordedNetwork):
        known = _EAGER.setdefault(network, {})
        if id(cost) not in known:
            plan = eager.plan(network, batch, machine, cost, "eager", options)
            known[id(cost)] = _simulated_baseline(network, batch, machine, cost, options, plan)
        return known[id(cost)]
    plan = network_wide.plan(network, batch, machine, cost, "baseline-p", options)
    return _simulated_baseline(network, batch, machine, cost, options, plan)


#: Baselines of recorded networks, by cost model: making one takes as long as a simulation.
_EAGER: WeakKeyDictionary[RecordedNetwork, dict[int, Baseline]] = WeakKeyDictionary()


def _simulated_baseline(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, options: TrainingOptions, plan: Plan
) -> Baseline:
    program = build(network, batch, cost, plan, link_rate(machine, options.link), options.optimizer)
    return _baseline_of(program, schedule(program))


def _baseline_of(program: Program, timed: IterationSchedule) -> Baseline:
    features = [step.compute_ps for step in program.steps if step.part == "features"]
    return Baseline(
        timed.time_ps,
        sum(features),
        memory_usage.usage(program, timed.step_ps),
        memory_usage.usage(program, timed.step_ps, "features"),
    )


show_options(simulate, request_options() | schemes.options())
