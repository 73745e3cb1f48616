"""The plans among which is searched: choices for each group, placements of optimizer and weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.base.option import Option
from buddysim.training import schemes
from buddysim.training.driver import simulate_plan
from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.choices import (
    DELAYED,
    LATE_OPTIMIZER,
    ON_GPU,
    OPTIMIZER_ON_HOST,
    WEIGHTS_ON_HOST,
    GroupChoice,
    HostPlacement,
)
from buddysim.training.make_plan import make_plan
from buddysim.training.request import TrainingRequest

if TYPE_CHECKING:
    from buddysim.training.cost import CostModel
    from buddysim.training.fitting.facts import GroupFacts
    from buddysim.training.iteration.plan import Plan
    from buddysim.training.networks.graph import Network
    from buddysim.training.outcome import IterationOutcome

#: Schemes that a plan is compared with, in PyTorch and without loss; the last one where its ratio is given.
SINGLE_SCHEMES = (
    "eager", "activation-checkpointing", "offload-activations", "offload-optimizer", "offload-weights", "buddy-scaled",
)  # fmt: skip


def options_of_singles() -> dict[str, Option]:
    """Return the options without which a single scheme is left out, and the others of that scheme, by name."""
    modules = (schemes.REGISTRY.find(name) for name in SINGLE_SCHEMES if schemes.required_options(name))
    return {name: option for module in modules for name, option in module.OPTIONS.items()}


class PlanSpace(ABC):
    """The plans of one network, batch, machine and budget.

    Attributes
    ----------
    network : at its batch, before it is recorded by a plan
    groups : names, in the order of the forward pass
    choices : of every group; the first one keeps what is saved
    placements : the first one is the GPU
    tries : plans that a search simulates next to each ladder, or at each budget, if not told otherwise
    budgets : steps of the budgets for which the integer program proposes plans
    counts_live_tensors : a plan needs what its tensors take at once, on whichever GPU
    early : groups whose copies back may start in the forward pass: nothing holds back those of the first two nodes
    serial_copies : copies out and back share a stream
    """

    tries = 40
    budgets = 16
    counts_live_tensors = True
    early = 0
    serial_copies = False

    def __init__(self, request: TrainingRequest, network: Network, cost: CostModel) -> None:
        self.request, self.network, self.cost = request, network, cost
        self.machine, self.options = request.load_machine(), request.options
        assert request.batch is not None
        self.batch: int = request.batch
        self.groups: tuple[str, ...] = ()
        self.choices: tuple[GroupChoice, ...] = ()
        self.placements: tuple[HostPlacement, ...] = ()

    @abstractmethod
    def plan(self, assignment: Assignment) -> Plan:
        """Return the plan of an assignment."""

    @abstractmethod
    def facts(self, assignment: Assignment, outcome: IterationOutcome) -> GroupFacts:
        """Return the figures of a simulated assignment."""

    @abstractmethod
    def unavailable_bytes(self) -> int:
        """Return the memory that no tensor can have: of the process and its libraries."""

    def simulate(self, plan: Plan) -> IterationOutcome:
        """Simulate a plan on the real timeline, within the request's memory."""
        return simulate_plan(self.network, self.batch, self.machine, self.cost, plan, self.options)

    def exceeds(self, plan: Plan) -> bool:
        """Whether a plan is known not to fit without being simulated whole."""
        return False

    @property
    def blocks(self) -> tuple[str, ...] | None:
        """Paths of the groups' modules in PyTorch; None where they have none."""
        return None

    def scheme_plan(self, scheme: str) -> Plan:
        """Return what a scheme decides.

        Raises
        ------
        BuddysimError
            where it isn't simulated with the request's options
        """
        return make_plan(self.network, self.batch, self.machine, self.cost, scheme, self.options)

    def eager_facts(self, outcome: IterationOutcome) -> GroupFacts:
        """Return the figures of the plan that keeps everything on the GPU."""
        return self.facts(Assignment(0, (0,) * len(self.groups)), outcome)


def possible_placements(space: PlanSpace, allow: Sequence[str]) -> tuple[HostPlacement, ...]:
    """Return the placements that the request's options allow."""
    late = (LATE_OPTIMIZER,) if DELAYED in allow else ()
    possible = [ON_GPU]
    for placement in (OPTIMIZER_ON_HOST, WEIGHTS_ON_HOST, *late):
        try:
            plan = space.scheme_plan(placement.scheme)
        except BuddysimError:
            continue
        if not plan.nothing_to_do:
            possible.append(placement)
    return tuple(possible)
