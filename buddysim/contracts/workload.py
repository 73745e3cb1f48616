"""Contracts of workloads: what is stated before the run, and a run that is verified and as stated."""

from __future__ import annotations

from collections.abc import Iterator

from buddysim.base.errors import BuddysimError
from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.texts import not_a_line
from buddysim.trace import open_trace, verify_trace
from buddysim.workloads import make_trace_of
from buddysim.workloads.device import import_pyopencl
from buddysim.workloads.solver import Solver
from buddysim.workloads.training.problem import TrainingProblem
from buddysim.workloads.workload_registry import INPUTS, SCALES, is_network, solver_of

#: Traced operations over those stated before the run.
_MIN_OF_STATED, _MAX_OF_STATED = 0.6, 1.6


def _problems(subject: Subject) -> Iterator[tuple[str, str]]:
    for scale, inputs in subject.member.PROBLEMS.items():
        for which in inputs:
            yield scale, which


def _misstated(subject: Subject) -> Iterator[str]:
    yield from not_a_line("SUMMARY", subject.member.SUMMARY)
    for scale, which in _problems(subject):
        if scale not in SCALES or which not in INPUTS:
            yield f"PROBLEMS has {scale}, {which}: expected {', '.join(SCALES)} with {', '.join(INPUTS)}"
        problem = subject.member.PROBLEMS[scale][which]
        if is_network(subject.member) and not isinstance(problem, TrainingProblem):
            yield f"PROBLEMS[{scale!r}][{which!r}] is a {type(problem).__name__}: expected a TrainingProblem"
    if set(subject.member.PROBLEMS.get("small", ())) != set(INPUTS):
        yield f"PROBLEMS['small']: expected {' and '.join(INPUTS)}"


def _impossible(subject: Subject) -> Iterator[str]:
    if is_network(subject.member):
        return
    for scale, which in _problems(subject):
        solver, at = solver_of(subject.name, scale, which), f"{scale} {which}"
        first, end = solver.window
        if not solver.arrays or min(array.bytes for array in solver.arrays.values()) <= 0:
            yield f"{at}: expected arrays of at least one element"
        if solver.steps < 1 or min(solver.setup_launches, solver.step_launches, solver.closing_launches) < 0:
            yield f"{at}: expected one step or more, launches of 0 or more"
        if not 0 <= first < end <= solver.launches:
            yield f"{at}: launches {first} to {end} are traced, of {solver.launches}"
        points = solver.snapshot_points
        if not points or list(points) != sorted(set(points)) or not 0 <= points[0] <= points[-1] <= solver.launches:
            yield f"{at}: snapshots at {points}: expected increasing numbers from 0 to {solver.launches} launches"
        if solver.traced_operations <= 0 or solver.native_seconds <= 0:
            yield f"{at}: {solver.traced_operations} operations, {solver.native_seconds} s: expected more than 0"


def not_as_stated(subject: Subject, which: str = "profile") -> Iterator[str]:
    """Breaches of the run of an input's smallest problem; none of a network, which needs PyTorch and its data."""
    if is_network(subject.member):
        return
    path = subject.folder / f"{subject.name}.bin"
    if not make_trace_of(subject.name, "small", which, path).verification:
        yield "verify gives no check: expected one or more"
    solver = solver_of(subject.name, "small", which)
    with open_trace(path) as trace:
        verify_trace(trace)
        yield from _other_than_stated(
            solver,
            {
                "arrays": [(one.name, one.bytes) for one in trace.allocations],
                "launches traced": [kernel.launch_index for kernel in trace.kernels],
                "snapshots": [one.launch_index for one in trace.snapshots],
            },
        )
        operations = sum(kernel.memory_instructions for kernel in trace.kernels)
        size_maps, expected = len(trace.size_maps), len(trace.snapshots) * len(solver.arrays)
    if not _MIN_OF_STATED < operations / solver.traced_operations < _MAX_OF_STATED:
        yield f"{operations} operations are traced: stated as {solver.traced_operations}"
    if size_maps != expected:
        yield f"{size_maps} size maps: expected {expected}, one for each array and snapshot"


def _other_than_stated(solver: Solver, traced: dict[str, list[object]]) -> Iterator[str]:
    first, end = solver.window
    stated = {
        "arrays": [(name, array.bytes) for name, array in solver.arrays.items()],
        "launches traced": list(range(first, end)),
        "snapshots": sorted({*solver.snapshot_points, *range(first, end + 1)}),
    }
    for what, values in traced.items():
        if values != stated[what]:
            yield f"{what}: {values}: stated as {stated[what]}"


def _without_opencl(subject: Subject) -> str:
    """The cause where the workload can't run."""
    if not is_network(subject.member):
        try:
            import_pyopencl()
        except BuddysimError as error:
            return str(error)
    return ""


CONTRACTS = {
    "workload": (
        Contract("its summary is a line, its problems have known scales and inputs", _misstated, safe=True),
        Contract("what it states before a run is possible", _impossible, safe=True),
        Contract("its smallest problem is solved, verified, and as stated", not_as_stated, hindrance=_without_opencl),
    )
}
