"""One step of a profiler trace: its operators with the time of their kernels, in the order of their launches.

A kernel belongs to the operator that launched it: they share an external number, or the operator encloses the launch,
which shares a correlation number with the kernel. Operators call each other (``linear``, ``matmul``, ``mm``, and
``mean`` calls ``sum``); the kernel counts for the outermost one whose name the prediction knows. A kernel of NCCL is an
operation of its own, whichever operator launched it: autograd's, where DDP reduces a bucket.

A trace without kernels was taken on a CPU: there each operator takes the time in which no operator that it calls runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from buddysim.training.against.collective_kernels import collective_of
from buddysim.training.against.trace_file import ProfilerTrace, TraceEvent


@dataclass
class MeasuredOperation:
    """An operator and what it launched.

    Attributes
    ----------
    name : without ``aten::``
    kernels : name and microseconds of each
    """

    name: str
    start_us: float
    kernels: list[tuple[str, float]] = field(default_factory=list)

    @property
    def us(self) -> float:
        """Microseconds of all its kernels."""
        return sum(us for _, us in self.kernels)


@dataclass(frozen=True)
class MeasuredStep:
    """A step.

    Attributes
    ----------
    label : of the step, ``"ProfilerStep#3"``; empty where the trace marks none and counts as one step
    steps : number of steps that the trace marks
    on_gpu : whether kernels were measured, not a CPU's operators
    us : from its begin to its end, or to that of its last kernel
    busy_us : in which at least one kernel runs
    """

    label: str
    steps: int
    on_gpu: bool
    us: float
    busy_us: float
    operations: tuple[MeasuredOperation, ...]


def measured_step(trace: ProfilerTrace, known: Collection[str]) -> MeasuredStep:
    """Return the step of median length, of all that the trace marks as a whole.

    Parameters
    ----------
    known : names of operators that the prediction has
    """
    calls = _Calls(trace, known)
    kernels = trace.of_kind("kernel", "copy")
    work = [(calls.launch_us(kernel), kernel) for kernel in kernels]
    on_gpu = any(event.kind == "kernel" for event in kernels)
    marks = sorted({(mark.name, mark.start_us, mark.end_us) for mark in trace.of_kind("step")}, key=lambda one: one[1])
    if not on_gpu:
        work = [(event.start_us, event) for event in trace.of_kind("operator")]
    label, begin, end = _step_of(marks, work)
    inside = [(launch, event) for launch, event in work if begin <= launch < end]
    operations = calls.operations(inside) if on_gpu else calls.own_times([event for _, event in inside])
    spans = [(event.start_us, event.end_us) for _, event in inside]
    last = max((stop for _, stop in spans), default=begin)
    first = begin if label else min((start for start, _ in spans), default=0.0)
    return MeasuredStep(
        label, len(marks), on_gpu, max(end if label else last, last) - first, _union(spans), tuple(operations)
    )


def _step_of(
    marks: Sequence[tuple[str, float, float]], work: Sequence[tuple[float, TraceEvent]]
) -> tuple[str, float, float]:
    """The mark of median length among those in which something runs; everything where there is none."""
    launches = sorted(launch for launch, _ in work)
    full = [mark for mark in marks if bisect_right(launches, mark[2]) > bisect_right(launches, mark[1])]
    if not full:
        return "", float("-inf"), float("inf")
    length = median(end - begin for _, begin, end in full)
    return min(full, key=lambda mark: (abs(mark[2] - mark[1] - length), mark[1]))


def _union(spans: Sequence[tuple[float, float]]) -> float:
    """The length of what intervals cover together."""
    covered, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered


class _Calls:
    """Which operators enclose an instant on a thread, innermost first."""

    def __init__(self, trace: ProfilerTrace, known: Collection[str]) -> None:
        self.known = known
        self.by_external = {event.external: event for event in trace.of_kind("operator") if event.external is not None}
        self.launches = {
            event.correlation: event for event in trace.of_kind("runtime") if event.correlation is not None
        }
        self.parents: dict[int, TraceEvent | None] = {}  # of an operator, by its identity
        self.threads: dict[tuple[str, str], list[TraceEvent]] = defaultdict(list)
        for event in trace.of_kind("operator"):
            self.threads[event.thread].append(event)
        for events in self.threads.values():
            self._nest(events)
        self.starts = {thread: [event.start_us for event in events] for thread, events in self.threads.items()}

    def launch_us(self, kernel: TraceEvent) -> float:
        """When a kernel was launched; its start where the trace doesn't say."""
        launch = self.launches.get(kernel.correlation) if kernel.correlation is not None else None
        if launch is not None:
            return launch.start_us
        operator = self.by_external.get(kernel.external) if kernel.external is not None else None
        return kernel.start_us if operator is None else operator.start_us

    def operations(self, kernels: Sequence[tuple[float, TraceEvent]]) -> list[MeasuredOperation]:
        """The operators of kernels with their launches, in order of the first launch."""
        operations: dict[object, MeasuredOperation] = {}
        for launch, kernel in sorted(kernels, key=lambda one: one[0]):
            unit: object
            collective = collective_of(kernel.name)
            if collective in self.known and collective is not None:
                unit, name = ("collective", id(kernel)), collective
            else:
                unit, name = self._unit(self._chain(kernel, launch), kernel.name)
            operation = operations.setdefault(unit, MeasuredOperation(name, launch))
            operation.kernels.append((kernel.name, kernel.duration_us))
        return list(operations.values())

    def own_times(self, events: Sequence[TraceEvent]) -> list[MeasuredOperation]:
        """The operators of a CPU's trace, each with the time of which no operator that it calls has a part."""
        own = {id(event): event.duration_us for event in events}
        for event in events:
            parent = self.parents.get(id(event))
            if parent is not None and id(parent) in own:
                own[id(parent)] -= event.duration_us
        operations: dict[object, MeasuredOperation] = {}
        for event in events:
            unit, name = self._unit(self._enclosing(event), event.name)
            operation = operations.setdefault(unit, MeasuredOperation(name, event.start_us))
            operation.kernels.append((event.name, max(0.0, own[id(event)])))
        return list(operations.values())

    def _nest(self, events: list[TraceEvent]) -> None:
        stack: list[TraceEvent] = []
        for event in events:
            while stack and stack[-1].end_us <= event.start_us:
                stack.pop()
            self.parents[id(event)] = stack[-1] if stack else None
            stack.append(event)

    def _chain(self, kernel: TraceEvent, launch_us: float) -> Iterator[TraceEvent]:
        operator = self.by_external.get(kernel.external) if kernel.external is not None else None
        if operator is None and kernel.correlation in self.launches:
            operator = self._innermost(self.launches[kernel.correlation].thread, launch_us)
        return iter(()) if operator is None else self._enclosing(operator)

    def _innermost(self, thread: tuple[str, str], instant_us: float) -> TraceEvent | None:
        events = self.threads.get(thread, [])
        position = bisect_right(self.starts.get(thread, []), instant_us) - 1
        event: TraceEvent | None = events[position] if position >= 0 else None
        while event is not None and event.end_us <= instant_us:
            event = self.parents[id(event)]
        return event

    def _enclosing(self, operator: TraceEvent) -> Iterator[TraceEvent]:
        event: TraceEvent | None = operator
        while event is not None:
            yield event
            event = self.parents[id(event)]

    def _unit(self, chain: Iterator[TraceEvent], otherwise: str) -> tuple[object, str]:
        """The operator that stands for a chain of calls, and its name."""
        innermost = outermost = None
        for event in chain:
            innermost = innermost or event
            if bare_name(event.name) in self.known:
                outermost = event
        shown = outermost or innermost
        return (otherwise, bare_name(otherwise)) if shown is None else (id(shown), bare_name(shown.name))


def bare_name(name: str) -> str:
    """Return an operator's name without its namespace, PyTorch's or FSDP's."""
    return name.removeprefix("aten::").removeprefix("fsdp::")
