"""Simulation of one result: a run of a trace on a machine under a scheme, and on request its perturbed runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.option import field_options
from buddysim.base.signature import show_options
from buddysim.buddy import AllocationProfile, ProfileOptions, SizeSource, Targets, profile_with, targets_of_other_input
from buddysim.buddy.profile_options import SYNTHETIC_SEEDS
from buddysim.buddy.profiler import observe
from buddysim.machine import Machine
from buddysim.replay import sensitivity
from buddysim.replay.compute_gap_scale import MAX_DENOMINATOR, exact_compute_gap_scale
from buddysim.replay.driver import ReplayRun
from buddysim.replay.footprint import MemoryFootprint, footprint_of
from buddysim.replay.kernel_selection import select_kernels
from buddysim.replay.request import Path, ReplayRequest
from buddysim.replay.result import ReplayResult
from buddysim.replay.schemes import REGISTRY
from buddysim.replay.schemes.base import SchemeBase
from buddysim.trace import Kernel, Trace, open_trace
from buddysim.trace.partial import require_complete

_LARGEST_SEED = 2**64 - 1


def simulate(
    trace: Trace | Path,
    machine: Machine | Path = ReplayRequest.machine,
    scheme: str = ReplayRequest.scheme,
    targets: Targets | Path | None = ReplayRequest.targets,
    *,
    progress: Callable[[int, int], None] | None = None,
    **keywords: Any,
) -> ReplayResult:
    """Replay a trace.

    Parameters
    ----------
    progress : called with the memory instructions done and in total, of all these runs, a few times per second

    Returns
    -------
    ReplayResult

    Raises
    ------
    BuddysimError : an unknown name, a trace that can't be read, allocations that don't fit the machine, or whose names
        the profiled trace doesn't have
    """
    request = ReplayRequest(trace, machine, scheme, targets, **keywords)
    with OpenTraces() as files:
        return Simulation(files, request).result(request.load_machine(), scheme, request.sensitivity, progress)


show_options(simulate, field_options(ReplayRequest))


class OpenTraces(ExitStack):
    """The traces that stay open during a call."""

    def trace(self, trace: Trace | Path) -> Trace:
        """Return the trace, opened if it is a path."""
        return trace if isinstance(trace, Trace) else self.enter_context(open_trace(trace))


class Simulation:
    """The inputs that several runs share: everything of a request but machine, scheme and sensitivity."""

    def __init__(self, files: OpenTraces, request: ReplayRequest) -> None:
        self.options, self.queueing = request.profile_options(), request.queueing
        self.exact_order = request.exact_order
        self.compute_gap_scale = exact_compute_gap_scale(request.compute_gap_scale)
        targets, profile_from = request.targets, request.profile_from
        self.trace = files.trace(request.trace)
        require_complete(self.trace, request.partial)
        self.kernels: list[Kernel] = select_kernels(self.trace, request.kernels)
        self.profiled = self.trace if profile_from is None else files.trace(profile_from)
        require_complete(self.profiled, request.partial)
        self.targets = targets if targets is None or isinstance(targets, Targets) else Targets.load(targets, self.trace)
        self._profiles: dict[ProfileOptions, Targets] = {}
        self._observed: list[AllocationProfile] | None = None

    @property
    def memory_instructions(self) -> int:
        """Memory instructions of one run."""
        return sum(kernel.memory_instructions for kernel in self.kernels)

    def result(
        self,
        machine: Machine,
        scheme: str,
        requested: str,
        progress: Callable[[int, int], None] | None,
        capacity_bytes: int | None = None,
    ) -> ReplayResult:
        """Return the result of a run and of its perturbed runs.

        Parameters
        ----------
        machine, scheme, requested, progress : as `simulate` has them; `requested` is its `sensitivity`
        capacity_bytes : device memory that the scheme may use; None: as the machine's keys say
        """
        plan = self.plan(requested)
        synthetic = self._synthetic(machine, scheme)
        every, total = self.memory_instructions, self.memory_instructions * (1 + len(plan.changes))
        own_progress = progress and (lambda done, _: progress(done, total))
        result = self._run(machine, scheme, sensitivity.UNCHANGED, own_progress, capacity_bytes)
        machines = {change: change.of(machine) for change in plan.changes}
        results = sensitivity.run_all(
            plan.changes,
            lambda change, report: self._run(machines[change], scheme, change, report, capacity_bytes),
            lambda done: progress(every + done, total) if progress else None,
        )
        described = sensitivity.describe_runs(plan, results, list(machines.values()))
        return replace(
            result,
            synthetic=synthetic,
            sensitivity=sensitivity.summarize_runs(plan, results),
            provenance={**result.provenance, "sensitivity": described},
        )

    def plan(self, requested: str) -> sensitivity.SensitivityRuns:
        """Return the perturbed runs of every result."""
        return sensitivity.plan_runs(
            requested,
            instructions=self.memory_instructions,
            assumed_gaps=self.trace.provenance.assumes("compute_gaps"),
            synthetic_sizes=any(
                SizeSource(t, self.options.compressor).synthetic_allocations for t in {self.trace, self.profiled}
            ),
        )

    def _synthetic(self, machine: Machine, scheme: str) -> dict[str, float | int | None]:
        """Return the range of ratios over seeds, if targets come from synthetic sizes."""
        scheme_class = REGISTRY.find(scheme)
        profiles_synthetic_sizes = (
            self.targets is None and SizeSource(self.profiled, self.options.compressor).synthetic_allocations
        )
        if not (profiles_synthetic_sizes and scheme_class.uses_targets):
            return {"min_ratio": None, "max_ratio": None, "seeds": None}
        ratios = [self.footprint(machine, scheme_class, options).ratio() for options in self.options.over_seeds()]
        return {"min_ratio": min(ratios), "max_ratio": max(ratios), "seeds": SYNTHETIC_SEEDS}

    def footprint(
        self, machine: Machine, scheme: type[SchemeBase], options: ProfileOptions | None = None
    ) -> MemoryFootprint:
        """Return the footprint under the targets; `options` are those of the profile, None: the run's own."""
        targets = self._targets(machine, scheme, options or self.options)
        return footprint_of(self.trace, self.kernels, targets, machine, scheme)

    def _run(
        self,
        machine: Machine,
        scheme: str,
        change: sensitivity.Perturbation,
        progress: Callable[[int, int], None] | None,
        capacity_bytes: int | None,
    ) -> ReplayResult:
        options = replace(self.options, seed=(self.options.seed + change.seed) % (_LARGEST_SEED + 1))
        scheme_class = REGISTRY.find(scheme)
        targets = self._targets(machine, scheme_class, options) if scheme_class.uses_targets else None
        compute_gap_scale = (self.compute_gap_scale * change.gaps).limit_denominator(MAX_DENOMINATOR)
        queueing = self.queueing and change == sensitivity.UNCHANGED
        try:
            return ReplayRun(
                self.trace,
                machine,
                scheme,
                targets,
                options,
                self.kernels,
                compute_gap_scale,
                queueing,
                capacity_bytes,
                exact_order=self.exact_order,
            ).run(progress)
        except BuddysimError as error:
            if not change.seed:
                raise
            raise BuddysimError(
                f"{error} (sizes of seed {options.seed}, a run for the sensitivity range: "
                "sensitivity latency,compute-gaps leaves it out)"
            ) from None

    def _targets(self, machine: Machine, scheme: type[SchemeBase], options: ProfileOptions) -> Targets:
        """Return the targets of a run: the caller's, or those of a profile, made once for each set of options."""
        if self.targets is not None:
            return self.targets
        options = scheme.profile_options(options, machine)
        if options not in self._profiles:
            if self._observed is None:  # options of a simulation differ only in what `observe` does not use
                self._observed = observe(self.profiled, options)
            targets = profile_with(self.profiled, options, self._observed).targets
            if self.profiled is not self.trace:
                targets = targets_of_other_input(targets, self.trace)
            self._profiles[options] = targets
        return self._profiles[options]
