"""Assembles the trace of a training: ten snapshots over the run, and one iteration with its kernels and snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from buddysim.capture.torch.access.graph_accesses import GraphKernels, OnePassKernel, write_kernel
from buddysim.capture.torch.caching_allocator import Segment
from buddysim.formats.operator_graph import OperatorGraph
from buddysim.trace import TraceWriter
from buddysim.trace.format import REPLAY_LABEL
from buddysim.workloads.solver import SNAPSHOTS
from buddysim.workloads.training.memory_layout import MemoryContents
from buddysim.workloads.training.observe import COMPRESSORS, ObservedIteration
from buddysim.workloads.training.tensor_layout import TensorLayout, lay_out


@dataclass
class Assembly:
    """Writes observed iterations to a trace, the traced one with its kernels.

    Parameters
    ----------
    writer : takes the trace
    snapshots : iterations of the snapshots over the run, ascending
    traced : the iteration whose kernels are written
    """

    writer: TraceWriter
    snapshots: tuple[int, ...]
    traced: int
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("kernels", "one_pass", "launches"), 0))
    _layout: TensorLayout | None = None
    _kernels: GraphKernels | None = None
    _shape: tuple[object, ...] = ()

    def add(self, iteration: ObservedIteration) -> None:
        """Add an observed iteration; iterations come in order."""
        graph = iteration.graph
        assert graph is not None
        if self._layout is None:
            self._begin(graph)
        if _shape(graph) != self._shape:
            raise RuntimeError(f"iteration {iteration.number} has other operators or tensors than those before")
        assert self._layout is not None
        memory = MemoryContents(self._layout)
        memory.begin(iteration)
        due_snapshots = [snapshot for snapshot, number in enumerate(self.snapshots) if number == iteration.number]
        if iteration.number == self.traced:
            self._trace(iteration, memory, due_snapshots)
        else:
            self._pass_over(iteration, memory, due_snapshots)

    @property
    def launches(self) -> int:
        """Kernel launches of an iteration."""
        return sum(self._kernels.counts) if self._kernels is not None else 0

    def _begin(self, graph: OperatorGraph) -> None:
        self._shape = _shape(graph)
        self._layout = layout = lay_out(graph)
        for number, segment in enumerate(layout.pool):
            self.writer.add_allocation(_name(number, segment), segment.base, segment.bytes)
        self._kernels = GraphKernels(graph)

    def _launch_of(self, snapshot: int) -> int:
        """Return the launches of an iteration before its snapshot; snapshots are spread over their iterations."""
        return round((snapshot + 0.5) / SNAPSHOTS * self.launches)

    def _pass_over(self, iteration: ObservedIteration, memory: MemoryContents, due_snapshots: list[int]) -> None:
        done = 0
        assert self._kernels is not None
        for operator, _ in memory.run(iteration):
            done += self._kernels.counts[operator]
            while due_snapshots and done >= self._launch_of(due_snapshots[0]):
                self._snapshot(iteration, memory, done, due_snapshots.pop(0))

    def _trace(self, iteration: ObservedIteration, memory: MemoryContents, due_snapshots: list[int]) -> None:
        """Write the kernels, with snapshots before the first one and after each operator that changed a segment."""
        graph, layout = iteration.graph, self._layout
        assert graph is not None
        assert layout is not None
        graph_kernels = GraphKernels(graph)
        first = iteration.number * self.launches
        self._maps(first, f"{REPLAY_LABEL} before the iteration", memory, range(len(layout.pool)))
        for number, storage in enumerate(graph.storages):
            address = layout.addresses[number]
            if storage.role == "input" and address is not None:
                self.writer.memcpy("htod", address, storage.bytes)
        done = 0
        for operator, changed in memory.run(iteration):
            kernels = graph_kernels.kernels_of(operator, layout.address, iteration.values.get(operator, {}))
            for kernel in kernels:
                write_kernel(self.writer, kernel, first + done)
                self.counts["kernels"] += 1
                self.counts["one_pass"] += isinstance(kernel, OnePassKernel)
                done += 1
            if kernels and changed:
                self._maps(first + done, f"{REPLAY_LABEL} after {kernels[-1].name}", memory, sorted(changed))
            while due_snapshots and done >= self._launch_of(due_snapshots[0]):
                self._snapshot(iteration, memory, done, due_snapshots.pop(0))

    def _snapshot(self, iteration: ObservedIteration, memory: MemoryContents, done: int, snapshot: int) -> None:
        progress = f"{100 * done / self.launches:.0f} % of its launches"
        label = f"iteration {iteration.number}, loss {iteration.loss:.4f}, after {progress}"
        every = range(len(memory.segments))
        self._maps(iteration.number * self.launches + done, label, memory, every, COMPRESSORS)

    def _maps(
        self,
        point: int,
        label: str,
        memory: MemoryContents,
        segments: range | list[int],
        compressors: Sequence[str] = COMPRESSORS[:1],
    ) -> None:
        snapshot = self.writer.add_snapshot(point, label)
        for segment in segments:
            for compressor, classes in zip(compressors, memory.segments[segment], strict=False):
                self.writer.add_size_map(snapshot, segment, classes, compressor)


def _shape(graph: OperatorGraph) -> tuple[object, ...]:
    """Return the properties that must be equal in all iterations."""
    storages = tuple((one.bytes, one.role, one.alloc_operator, one.free_operator) for one in graph.storages)
    return storages, tuple((one.name, one.inputs, one.outputs) for one in graph.operators)


def _name(number: int, segment: Segment) -> str:
    return f"segment {number} ({'small' if segment.small else 'large'} blocks)"
