"""The question that users ask: my model, this GPU, this much memory: what do I keep, recompute or offload?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.training.fitting.block_space import BlockSpace
from buddysim.training.fitting.choices import check_allowed
from buddysim.training.fitting.fit_result import FitResult, make_result
from buddysim.training.fitting.largest import max_token_rate, with_largest
from buddysim.training.fitting.layer_space import LayerSpace
from buddysim.training.fitting.mixed_program import Solver, solve_with_scipy
from buddysim.training.fitting.search import PlanSearch
from buddysim.training.recorded_step.from_config import ConfigNetwork
from buddysim.training.request import TrainingRequest

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.fitting.plan_space import PlanSpace
    from buddysim.training.fitting.tried_plans import Progress
    from buddysim.training.networks.graph import Network

MAX_TRIES = 1 << 20
MAX_SLOWDOWN = 1000.0
#: In place of a batch or a sequence: the largest one.
MAX = "max"


@dataclass(frozen=True)
class FitQuestion:
    """What is requested.

    Attributes
    ----------
    request : the iteration; its `memory_bytes` are the budget, and its scheme plays no part
    slowdown : the largest part by which the fastest plan may take longer, where the least memory is requested; None:
        the least time is
    allow : names of what may change results, of `choices.LOSSY`
    tries : plans that are simulated at most next to each ladder, or at each budget; None: 2 of a model's
        configuration, 40 of another network
    solve : solves the search's integer programs
    """

    request: TrainingRequest
    slowdown: float | None = None
    allow: tuple[str, ...] = ()
    tries: int | None = None
    solve: Solver = solve_with_scipy

    def __post_init__(self) -> None:
        check_allowed(self.allow)
        if self.slowdown is not None and not 0 <= self.slowdown <= MAX_SLOWDOWN:
            raise BuddysimError(f"slowdown {self.slowdown:g}: expected 0 to {MAX_SLOWDOWN:g}")
        if self.tries is not None and not 0 <= self.tries <= MAX_TRIES:
            raise BuddysimError(f"tries {shortened(self.tries)}: expected 0 to {MAX_TRIES} plans")

    def budget(self) -> int:
        """Return the bytes of GPU memory."""
        return self.request.options.memory_bytes or self.request.load_machine().memory_bytes

    def space(self, cost: CostModel | None = None) -> PlanSpace:
        """Return the plans among which is searched."""
        return plan_space(self.request, self.allow, cost)

    def answer(self, cost: CostModel | None = None, progress: Progress | None = None) -> FitResult:
        """Search, and return the best plan."""
        space = self.space(cost)
        search = PlanSearch(
            space, self.budget(), slowdown=self.slowdown, steps=self.tries, progress=progress, solve=self.solve
        )
        return make_result(space, search.run(), self.budget())


def plan_space(request: TrainingRequest, allow: Sequence[str] = (), cost: CostModel | None = None) -> PlanSpace:
    """Return the plans of a request: of a model of a configuration block by block, else part by part."""
    request = request.resolved()
    request = replace(request, machine=request.load_machine(), network=request.load_network())
    network, cost = request.load_network(), cost or request.cost_model()
    if isinstance(network, ConfigNetwork):
        return BlockSpace(request, network, cost, allow)
    return LayerSpace(request, network, cost, allow)


def answer_to(
    question: FitQuestion,
    *,
    largest: Sequence[str] = (),
    maximize: str | None = None,
    progress: Progress | None = None,
) -> FitResult:
    """Return the best plan, at the largest batch or sequence where these are requested.

    Parameters
    ----------
    largest : ``"batch"``, ``"sequence"`` or nothing
    maximize : ``"tokens"``: over batches and plans together; None: the batch is given

    Raises
    ------
    BuddysimError
        several of these at once
    """
    if len(largest) + (maximize is not None) > 1:
        raise BuddysimError("batch max, sequence max and maximize tokens: expected one of them")
    if maximize not in (None, "tokens"):
        raise BuddysimError(f"maximize {shortened(maximize)}: expected tokens")
    cost = question.request.cost_model()
    if maximize is not None:
        return max_token_rate(question, cost, progress)
    for what in largest:
        question = with_largest(question, what, cost)
    return question.answer(cost, progress)


def fit(
    network: Network | str | os.PathLike[str],
    machine: TrainingMachine | str | None = None,
    memory_budget: int | None = None,
    *,
    batch: int | str | None = None,
    sequence: int | str | None = None,
    slowdown: float | None = None,
    maximize: str | None = None,
    allow: Sequence[str] = (),
    tries: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> FitResult:
    """Find what to keep, recompute, offload or compress, so that a training step fits into a GPU.

    Parameters
    ----------
    network, machine, options : as of `buddysim.training.simulate`
    memory_budget : bytes of GPU memory; the machine's if not given
    batch, sequence : as there; ``"max"``: the largest one for which a plan fits
    slowdown : find the least memory with which a step takes at most this part longer than the fastest plan; if not
        given, the least time
    maximize : ``"tokens"``: find the batch and the plan with the most tokens per second
    allow : names of what may change results: ``compress-16``, ``compress-10``, ``compress-8``,
        ``offload-optimizer-delayed``
    tries : plans that are simulated at most next to each ladder, or at each budget
    progress : is called with the number of simulated plans, and the newest

    Raises
    ------
    BuddysimError
        a wrong value
    """
    sizes = {"batch": batch, "sequence": sequence}
    numbers: dict[str, Any] = {name: value for name, value in sizes.items() if value not in (None, MAX)}
    request = TrainingRequest.of(
        network=network, machine=machine, memory_bytes=memory_budget, **numbers, **options
    ).resolved()
    question = FitQuestion(request, slowdown, tuple(allow), tries)
    largest = [name for name, value in sizes.items() if value == MAX]
    return answer_to(question, largest=largest, maximize=maximize, progress=progress)
