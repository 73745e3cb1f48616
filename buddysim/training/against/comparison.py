"""A predicted training step against the step of a profiler trace: where the prediction is off, largest first."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple

from buddysim.training.against.alignment import aligned
from buddysim.training.against.measured_step import MeasuredOperation, MeasuredStep, measured_step
from buddysim.training.against.predicted_step import predicted_step
from buddysim.training.against.trace_file import ProfilerTrace, read_trace
from buddysim.training.networks.recorded.network import RecordedNetwork
from buddysim.training.networks.recorded.work import work_of

if TYPE_CHECKING:
    from buddysim.training.autograd.records import TracedOperation
    from buddysim.training.cost import CostModel
    from buddysim.training.request import TrainingRequest

#: Kinds of work, in the order of a table, and the kernels that do it; the last one takes all others.
_KERNELS = (
    ("communication", re.compile(r"nccl|all_?gather|all_?reduce|reduce_?scatter", re.I)),
    ("copies", re.compile(r"^mem(cpy|set)\b", re.I)),
    ("attention", re.compile(r"flash|fmha|mem_?eff|attention|cudnn.*sdpa", re.I)),
    ("products", re.compile(r"gemm|gemv|cutlass|cublas|_mm_|wgmma|s\d+816|::(mm|addmm|bmm|matmul)$|nvjet", re.I)),
)
_OTHER = "other kernels"

PS_PER_US = 10**6


class PredictedOperation(NamedTuple):
    """An operation of the predicted step."""

    name: str
    scope: str
    phase: str
    kind: str
    us: float


class ComparedOperation(NamedTuple):
    """An operation of both steps, or of one.

    Attributes
    ----------
    scope, phase : of the predicted one; empty where there is none
    kernels : names of the measured kernels
    predicted_us, measured_us : None where the step hasn't got it
    """

    name: str
    scope: str
    phase: str
    kernels: tuple[str, ...]
    predicted_us: float | None
    measured_us: float | None

    @property
    def excess_us(self) -> float:
        """What the prediction has too much."""
        return (self.predicted_us or 0.0) - (self.measured_us or 0.0)


class ComparedGroup(NamedTuple):
    """Operations of one name, or kernels of one kind: counts, and microseconds of all together."""

    name: str
    predicted: int
    measured: int
    predicted_us: float
    measured_us: float

    @property
    def excess_us(self) -> float:
        """What the prediction has too much."""
        return self.predicted_us - self.measured_us


@dataclass(frozen=True)
class TraceComparison:
    """A prediction against a trace.

    Attributes
    ----------
    gpu : name of the measured GPU
    step : the measured one
    operations : of both steps in order
    kinds : by kind of work
    names : by operator
    predicted_step_us : of the whole predicted step, waits included; None where operations alone are compared
    """

    path: str
    gpu: str | None
    step: MeasuredStep
    operations: tuple[ComparedOperation, ...]
    kinds: tuple[ComparedGroup, ...]
    names: tuple[ComparedGroup, ...]
    predicted_step_us: float | None = None

    @property
    def predicted_us(self) -> float:
        """Of all kernels."""
        return fsum(one.predicted_us or 0.0 for one in self.operations)

    @property
    def kernel_us(self) -> float:
        """Of all measured kernels, also of those that run at once."""
        return fsum(one.measured_us or 0.0 for one in self.operations)

    @property
    def matched(self) -> int:
        """Operations of both steps."""
        return sum(one.predicted_us is not None and one.measured_us is not None for one in self.operations)

    def largest(self) -> list[ComparedOperation]:
        """Operations of both steps, the largest difference first."""
        both = [one for one in self.operations if None not in (one.predicted_us, one.measured_us)]
        return sorted(both, key=lambda one: -abs(one.excess_us))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as a file has it; times in microseconds."""
        return {
            "file": self.path,
            "gpu": self.gpu,
            "step": self.step.label,
            "steps": self.step.steps,
            "on_gpu": self.step.on_gpu,
            "measured": {"step_us": self.step.us, "busy_us": self.step.busy_us, "kernel_us": self.kernel_us},
            "predicted": {"step_us": self.predicted_step_us, "kernel_us": self.predicted_us},
            "matched": self.matched,
            "kinds": [one._asdict() for one in self.kinds],
            "operators": [one._asdict() for one in self.names],
            "operations": [{**one._asdict(), "kernels": list(one.kernels)} for one in self.operations],
        }


def compare_with_trace(path: str | os.PathLike[str], request: TrainingRequest) -> TraceComparison:
    """Compare the step of a request with that of a profiler trace.

    Raises
    ------
    BuddysimError
        a file that is no trace; a network whose operations aren't known
    """
    trace, outcome = read_trace(path), predicted_step(request)
    assert isinstance(outcome.network, RecordedNetwork)
    comparison = compared(os.fspath(path), trace, predicted_operations(outcome.network, outcome.cost))
    return replace(comparison, predicted_step_us=outcome.time_ps / PS_PER_US)


def predicted_operations(network: RecordedNetwork, cost: CostModel) -> list[PredictedOperation]:
    """The operations of a recorded step with their predicted times, in order."""
    tape = network.tape
    return [
        PredictedOperation(one.name, one.scope, one.phase, _kind_of(one), _predicted_ps(one, cost, tape.compiled) / 1e6)
        for one in tape.operations
        if one.phase != "setup" and one.name != "wait"
    ]


def _predicted_ps(operation: TracedOperation, cost: CostModel, compiled: bool) -> int:
    if operation.collective is not None:
        return cost.collective_ps(operation.collective)
    return cost.operation_ps(work_of(operation, compiled))


def compared(path: str, trace: ProfilerTrace, predicted: Sequence[PredictedOperation]) -> TraceComparison:
    """Compare predicted operations with those of a trace."""
    known = {one.name for one in predicted}
    step = measured_step(trace, known)
    measured = [one for one in step.operations if one.name in known]
    pairs = aligned([one.name for one in predicted], [one.name for one in measured])
    operations = [
        _compared(None if first is None else predicted[first], None if second is None else measured[second])
        for first, second in pairs
    ]
    operations += [_compared(None, one) for one in step.operations if one.name not in known]
    kinds = _groups(
        ((one.kind, one.us) for one in predicted),
        ((_kind_of_kernel(name), us) for operation in step.operations for name, us in operation.kernels),
    )
    names = _groups(((one.name, one.us) for one in predicted), ((one.name, one.us) for one in step.operations))
    return TraceComparison(path, trace.gpu, step, tuple(operations), kinds, names)


def _compared(predicted: PredictedOperation | None, measured: MeasuredOperation | None) -> ComparedOperation:
    name = predicted.name if predicted is not None else measured.name if measured is not None else ""
    return ComparedOperation(
        name,
        predicted.scope if predicted is not None else "",
        predicted.phase if predicted is not None else "",
        tuple(kernel for kernel, _ in measured.kernels) if measured is not None else (),
        None if predicted is None else predicted.us,
        None if measured is None else measured.us,
    )


def _groups(predicted: Iterable[tuple[str, float]], measured: Iterable[tuple[str, float]]) -> tuple[ComparedGroup, ...]:
    """Groups by name, the largest difference first."""
    times: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for side, values in enumerate((predicted, measured)):
        for name, us in values:
            times[name][side].append(us)
    groups = (ComparedGroup(name, len(a), len(b), fsum(a), fsum(b)) for name, (a, b) in times.items())
    return tuple(sorted(groups, key=lambda one: (-abs(one.excess_us), one.name)))


def _kind_of(operation: TracedOperation) -> str:
    if operation.collective is not None:
        return "communication"
    if "attention" in operation.name:
        return "attention"
    return "products" if operation.products else _OTHER


def _kind_of_kernel(name: str) -> str:
    return next((kind for kind, pattern in _KERNELS if pattern.search(name)), _OTHER)
