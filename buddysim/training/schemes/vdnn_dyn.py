"""vDNN's dynamic policy (Section III-C): planning passes that trade memory for speed until the network fits.

1. All X offloaded, CONV algorithms without workspace: if this does not fit, the network cannot be trained.
2. The fastest algorithms with no offload, then with X of CONV layers offloaded, then with all X offloaded. The first
   configuration that fits is taken.
3. Greedy: the fastest algorithms again, with X of CONV layers offloaded, then all X. Where the pool cannot serve a
   layer's workspace next to all live tensors, the layer takes its next algorithm in order of speed, down to implicit
   GEMM. The first policy that fits is taken.
4. The configuration of 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from buddysim.base.memory_pool import ALIGNMENT
from buddysim.training.iteration.own_allocator import allocator_of
from buddysim.training.iteration.pinned import host_failure
from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.iteration.program import Program, Step
from buddysim.training.iteration.schedule import schedule
from buddysim.training.outcome import format_size, layer_name
from buddysim.training.scheme_facts import SchemeFacts
from buddysim.training.schemes import UNCHANGED, _algorithms
from buddysim.training.schemes._algorithms import PASSES, Algorithms
from buddysim.training.schemes._links import link_rate
from buddysim.training.schemes.vdnn import moved_inputs, offloaded

if TYPE_CHECKING:
    from buddysim.base.memory_pool import PoolExhausted
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import ConvAlgorithm, CostModel
    from buddysim.training.iteration.memory_usage import (
        FailedRequest,
        TensorAddresses,
        WorkspaceFallback,
        WorkspaceRelief,
    )
    from buddysim.training.networks.graph import Network

SUMMARY = {"vdnn-dyn": "vDNN's dynamic policy: planning passes select the offloads and the CONV algorithms"}
FAMILY = "vdnn"
ORDER = 110
FACTS = SchemeFacts(
    source="Rhu et al., vDNN, MICRO 2016, section III-C",
    moves="as the policy that it selects",
    costs="as the policy that it selects",
    applies="all networks",
    check="`docs/validation/training-papers.md`",
)
ACCURACY = UNCHANGED
#: It can be trained if it passes the first profiling pass.
FITS_AS = {"vdnn-dyn": "vdnn-all-m"}

#: The beginning of a note that names a smaller budget.
FASTER_WITH_LESS = "faster with less memory"
_MIB = 2**20
_MEMORY = {"gpu": "GPU memory", "host": "pinned host memory"}


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """The first configuration that gets through its profiling pass; `Plan.notes` has the outcome of each pass."""
    return _PlanningPasses(network, batch, machine, cost, name, options).plan()


class _PlanningPasses:
    def __init__(
        self,
        network: Network,
        batch: int,
        machine: TrainingMachine,
        cost: CostModel,
        name: str,
        options: TrainingOptions,
    ) -> None:
        self.network, self.batch, self.cost, self.name = network, batch, cost, name
        self.machine, self.options = machine, options
        self.link = link_rate(machine, options.link)
        self.capacity = options.memory_bytes or machine.memory_bytes
        self.notes: list[str] = []

    def plan(self) -> Plan:
        slow = _algorithms.memory_optimal(self.network, self.batch, self.cost)
        fast = _algorithms.fastest(self.network, self.batch, self.cost)
        least = self._policy("all", slow)
        if not self._passes(least, "all(m)"):
            return self._noted(least)
        for policy in ("none", "conv", "all"):
            candidate = self._policy(policy, fast)
            if self._passes(candidate, f"{policy}(p)"):
                if policy == "all":
                    self._note_faster_budget(candidate, fast)
                return self._noted(candidate)
        for policy in ("conv", "all"):
            greedy = self._greedy(policy, fast)
            if greedy is not None:
                return self._noted(greedy)
        self.notes.append("all(m) taken")
        return self._noted(least)

    def _greedy(self, policy: str, fast: Algorithms) -> Plan | None:
        greedy = _Downgrades(self.network, self.batch, self.cost, fast)
        fits = self._passes(self._policy(policy, fast), f"greedy {policy}", greedy)
        return self._policy(policy, greedy.algorithms) if fits else None

    def _note_faster_budget(self, taken: Plan, fast: Algorithms) -> None:
        """Note the largest budget at which greedy conv, tried after all(p), is taken and faster than all(p).

        The published order tries all(p) first. Its offloads may cost more than slower algorithms would; in less memory
        all(p) does not fit, and the greedy policy is tried.
        """
        fitting, failing = self.capacity, 0
        program = self._built(taken)
        while fitting - failing > ALIGNMENT:
            middle = (fitting + failing) // 2
            if self._failure(taken, program, middle) is None:
                fitting = middle
            else:
                failing = middle
        budget = failing // _MIB * _MIB
        options = replace(self.options, memory_bytes=budget)
        smaller = _PlanningPasses(self.network, self.batch, self.machine, self.cost, self.name, options)
        plan = smaller._greedy("conv", fast)
        if plan is None:
            return
        time_ps, smaller_ps = (
            schedule(self._allocated(plan, self._built(plan), size).program).time_ps
            for plan, size in ((taken, self.capacity), (plan, budget))
        )
        if smaller_ps < time_ps:
            percent = 100 * (1 - smaller_ps / time_ps)
            self.notes.append(
                f"{FASTER_WITH_LESS}: {percent:.0f} % less time with --memory-budget {budget // _MIB}MiB (greedy conv)"
            )

    def _policy(self, policy: str, algorithms: Algorithms) -> Plan:
        stash = moved_inputs(self.network, offloaded(self.network, policy))
        return Plan(self.name, algorithms, stash=stash, prefetch=self.options.prefetch)

    def _noted(self, plan: Plan) -> Plan:
        return replace(plan, notes=tuple(self.notes))

    def _passes(self, plan: Plan, title: str, greedy: _Downgrades | None = None) -> bool:
        failure = self._failure(plan, self._built(plan), self.capacity, greedy)
        result = f"{title}: "
        if failure:
            layer = layer_name(self.network, failure.layer)
            step = "" if layer is None else f" at {layer} {failure.pass_}"
            result += f"out of {_MEMORY[failure.memory]}{step} by {format_size(failure.shortfall_bytes)}"
        else:
            result += "fits"
            if greedy:
                result += f", {greedy.downgraded} of {len(PASSES) * len(greedy.algorithms)} algorithms downgraded"
        self.notes.append(result)
        return failure is None

    def _built(self, plan: Plan) -> Program:
        from buddysim.training.iteration.build import build

        runs = plan.as_recorded_if_idle(self.network)
        return build(self.network, self.batch, self.cost, runs, self.link, self.options.optimizer)

    def _failure(
        self, plan: Plan, program: Program, capacity: int, greedy: _Downgrades | None = None
    ) -> FailedRequest | None:
        """Why an iteration does not fit in so many bytes of GPU memory; None where it does."""
        relief = greedy.start if greedy else None
        placement = self._allocated(plan, program, capacity, relief)
        return placement.failure or host_failure(placement.program, self.machine.max_pinned_bytes)

    def _allocated(
        self, plan: Plan, program: Program, capacity: int, relief: WorkspaceRelief | None = None
    ) -> TensorAddresses:
        allocator = allocator_of(plan.as_recorded_if_idle(self.network), self.network, self.machine)
        return allocator.allocate(program, capacity, self.options.pool_policy, relief)


class _Downgrades:
    """Takes slower algorithms with less workspace, step by step, where the pool runs over."""

    def __init__(self, network: Network, batch: int, cost: CostModel, fastest: Algorithms) -> None:
        self.network, self.batch, self.cost = network, batch, cost
        self._fastest: Mapping[int, Mapping[str, ConvAlgorithm]] = fastest
        self.algorithms: dict[int, dict[str, ConvAlgorithm]] = {}
        self.start()

    def start(self) -> WorkspaceFallback:
        """Begin an attempt with the fastest algorithms."""
        self.algorithms = {layer: dict(passes) for layer, passes in self._fastest.items()}
        return self.relief

    @property
    def downgraded(self) -> int:
        """How many algorithms aren't the fastest."""
        return sum(
            algorithm != self._fastest[layer][pass_]
            for layer, passes in self.algorithms.items()
            for pass_, algorithm in passes.items()
        )

    def relief(self, step: Step, short: PoolExhausted) -> int | None:
        """The step's workspace after one downgrade; backward passes share one workspace."""
        if step.layer not in self.algorithms:
            return None
        algorithms = self.algorithms[step.layer]
        names = ("forward",) if step.pass_ == "forward" else tuple(n for n in PASSES[1:] if n in algorithms)
        hungriest = max(names, key=lambda name: algorithms[name].workspace_bytes)
        if not algorithms[hungriest].workspace_bytes:
            return None
        algorithms[hungriest] = self._next(step.layer, hungriest)
        # backward_data isn't run where nothing wants dX, and then takes no workspace
        running = [name for name in names if name != "backward_data" or self._wants_dx(step.layer)]
        return max(algorithms[name].workspace_bytes for name in running)

    def _wants_dx(self, layer: int) -> bool:
        network = self.network
        return any(network.layers[network.buffer_of(i)].kind != "input" for i in network.layers[layer].inputs)

    def _next(self, layer: int, pass_: str) -> ConvAlgorithm:
        name: _algorithms.ConvPass = next(name for name in PASSES if name == pass_)
        ranking = self.cost.conv_algorithms(self.network.layers[layer], self.batch, name)
        return ranking[ranking.index(self.algorithms[layer][pass_]) + 1]
