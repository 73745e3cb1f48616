"""Simulates one training iteration under a scheme."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.memory_pool import FITS
from buddysim.training import schemes
from buddysim.training.fit_check import allocate_tensors, capacity_bytes
from buddysim.training.iteration import memory_usage
from buddysim.training.iteration.build import build
from buddysim.training.iteration.optimizer import find_optimizer
from buddysim.training.iteration.pinned import host_pinned
from buddysim.training.iteration.plan import PREFETCHES, Plan, TrainingOptions
from buddysim.training.iteration.program import Program
from buddysim.training.iteration.schedule import schedule
from buddysim.training.networks.graph import Network
from buddysim.training.outcome import Baseline, IterationOutcome
from buddysim.training.result import TrainingResult
from buddysim.training.schemes import baseline as network_wide
from buddysim.training.schemes._links import link_rate
from buddysim.training.search import LARGEST_BATCH
from buddysim.training.signature import show_options

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.machine.training_table import HostLinkConfig
    from buddysim.training.cost import CostModel


def simulate_outcome(
    network: Network | str | os.PathLike[str],
    batch: int,
    machine: TrainingMachine | str,
    scheme: str,
    *,
    options: TrainingOptions | None = None,
    cost: CostModel | None = None,
    **keywords: Any,
) -> IterationOutcome:
    """One iteration, as the raw object.

    Parameters
    ----------
    network : a graph, the name of one of the zoo, or the path of a TOML file
    batch : samples
    machine : a machine or its name
    scheme : a name of `buddysim.training.schemes.REGISTRY`
    options, keywords : an `TrainingOptions`, or its fields by name; options that schemes declare go to
        ``TrainingOptions.extra``
    cost : layer times; None loads the model of the machine
    """
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel

    network = network if isinstance(network, Network) else Network.load(network)
    machine = machine if isinstance(machine, TrainingMachine) else TrainingMachine.load(machine)
    if options is not None and keywords:
        raise BuddysimError(f"option {next(iter(keywords))}: expected among options, where these are given")
    options = options or make_options(**keywords)
    batch = _whole("batch", batch)
    if not 1 <= batch <= LARGEST_BATCH:
        raise BuddysimError(f"batch {batch}: expected 1 to {LARGEST_BATCH}")
    cost = cost or CostModel.load(machine, options.conv_library, precision=options.precision)
    if cost.precision.name != options.precision:
        raise BuddysimError(
            f"precision {options.precision}: expected {cost.precision.name}, that of the layer times given"
        )
    network = network.with_element_bytes(cost.precision.element_bytes)
    plan = schemes.REGISTRY.find(scheme).plan(network, batch, machine, cost, scheme, options)
    return simulate_plan(network, batch, machine, cost, plan, options)


def simulate(
    network: Network | str | os.PathLike[str],
    batch: int,
    machine: TrainingMachine | str = "titan-x",
    scheme: str = "vdnn-dyn",
    **keywords: Any,
) -> TrainingResult:
    """Simulate one training iteration: flat counters, one row per layer, provenance.

    Parameters
    ----------
    network : a graph, the name of one of the zoo, or the path of a TOML file
    batch : samples in the batch
    machine : a machine or its name
    scheme : name of a training scheme
    """
    return TrainingResult.from_outcome(simulate_outcome(network, batch, machine, scheme, **keywords))


def make_options(**keywords: Any) -> TrainingOptions:
    """An `TrainingOptions` from keywords: its fields, and options that schemes declare."""
    fields = set(TrainingOptions.__dataclass_fields__) - {"extra"}
    selected = {name: value for name, value in keywords.items() if name in fields}
    extra = {**keywords.get("extra", {})}
    extra |= {name: value for name, value in keywords.items() if name not in (*fields, "extra")}
    declared = schemes.options() if extra else {}
    for name, value in extra.items():
        if name not in declared:
            every = sorted({*fields, *declared})
            raise BuddysimError(f"option {shortened(name)}: expected one of {', '.join(every)}{hint(name, every)}")
        if value is not None:
            declared[name].check(name, value)
    if selected.get("memory_bytes") is not None:
        selected["memory_bytes"] = _whole("memory_bytes", selected["memory_bytes"])
    options = TrainingOptions(**selected, extra=extra)
    for name, value, expected in (
        ("prefetch", options.prefetch, PREFETCHES),
        ("pool_policy", options.pool_policy, FITS),
    ):
        if value not in expected:
            raise BuddysimError(f"{name} {value!r}: expected one of {', '.join(expected)}")
    find_optimizer(options.optimizer)
    if options.memory_bytes is not None and options.memory_bytes < 1:
        raise BuddysimError(f"memory of {options.memory_bytes} bytes: expected 1 or more")
    return options


def _whole(name: str, value: Any) -> int:
    """The number as an `int`, whatever integer type it has."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise BuddysimError(f"{name} {shortened(value)}: expected an integer") from None


def simulate_plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, plan: Plan, options: TrainingOptions,
    program: Program | None = None,
) -> IterationOutcome:  # fmt: skip
    """The iteration that a scheme planned; `program` is what `build` makes of the plan, where that is at hand."""
    if program is None:
        program = build(network, batch, cost, plan, link_rate(machine, options.link), options.optimizer)
    placement, failure = allocate_tensors(program, plan, machine, options)
    timed = schedule(placement.program)
    pinned, _ = host_pinned(placement.program)
    return IterationOutcome(
        plan.scheme, network.in_place_only(plan.in_place), batch, machine, cost, options, plan, timed, placement,
        capacity_bytes(plan, machine, options), failure, pinned, baseline(network, batch, machine, cost, options),
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
    """The network-wide allocation with the fastest algorithms, and the oracle's time."""
    plan = network_wide.plan(network, batch, machine, cost, "baseline-p", options)
    program = build(network, batch, cost, plan, link_rate(machine, options.link), options.optimizer)
    timed = schedule(program)
    features = [step.compute_ps for step in program.steps if step.part == "features"]
    return Baseline(
        timed.time_ps,
        sum(features),
        memory_usage.usage(program, timed.step_ps),
        memory_usage.usage(program, timed.step_ps, "features"),
    )


show_options(simulate)
