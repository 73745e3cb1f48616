"""Makes the trace file from a capture's spool."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import buddysim
from buddysim.base.memory_pool import MemoryPool
from buddysim.base.output import Output
from buddysim.capture.page_sampling import contents_budgets, resample_pages
from buddysim.capture.snapshot_selection import select_over_run
from buddysim.capture.torch.access.graph_accesses import ASSUMED, GraphKernels, write_kernel
from buddysim.capture.torch.spool import Spool, SpooledSnapshot
from buddysim.formats.operator_graph import OperatorGraph
from buddysim.trace import Provenance, TraceWriter
from buddysim.trace.format import PAGE_BYTES

CONTENTS_BYTES = 32 << 20
FIRST_BASE = 0x7F00_0000_0000
ALIGNMENT = 512
_ARENA = 1 << 44
#: Roles of storages that have their own address for the whole run.
_LASTING = ("weight", "buffer", "gradient", "optimizer", "input", "feature_map")


@dataclass(frozen=True)
class TorchCaptureSummary:
    """Counts of the trace file."""

    snapshots: int
    allocations: int
    bytes_seen: int
    kernels: int


def assemble(
    spool: Spool,
    output: Path | Output,
    snapshots: int,
    source: str,
    command: str,
    end: str,
    licence: str = "",
    level: int = 3,
    contents_bytes: int = CONTENTS_BYTES,
    access_model: str = "kernels",
) -> TorchCaptureSummary:
    """Write the trace.

    Parameters
    ----------
    spool : the spool of the script
    output : path of the trace file, or the open output
    snapshots : number of snapshots to keep
    source, command, licence : for the provenance
    end : how the script ended
    level : of zstd
    contents_bytes : largest number of bytes of contents in the file, equal for all snapshots
    access_model : a key of `access.graph_accesses.ASSUMED`
    """
    graph = spool.graph()
    taken = spool.iterations
    done = max([spool.progress().iterations, *(iteration + 1 for iteration in taken)], default=0)
    iterations = [taken[index] for index in _select_iterations(taken, done, snapshots)]
    provenance = Provenance(
        tool="buddysim capture torch",
        version=buddysim.__version__,
        source=source,
        licence=licence,
        command=command,
        assumptions=dict(ASSUMED[access_model]) | _assumptions(graph, iterations, done, end),
    )
    with TraceWriter(output, provenance, compression_level=level) as writer:
        snapshot_bytes = contents_bytes // max(len(iterations), 1)
        kernels = GraphKernels(graph, access_model) if graph is not None else None
        return _Assembly(writer, spool, graph, kernels, iterations, snapshot_bytes).write()


def _select_iterations(taken: list[int], done: int, count: int) -> list[int]:
    """Return the indices of the snapshots to keep: the first one and those nearest to equal distances."""
    if len(taken) <= count:
        return list(range(len(taken)))
    if count == 1:
        return [len(taken) - 1]
    later = select_over_run(taken[1:], max(done - 1, 1), count - 1)
    return [0, *(1 + index for index in later)]


def _assumptions(graph: OperatorGraph | None, iterations: list[int], done: int, end: str) -> dict[str, str]:
    """Return the assumptions of the capture, for the provenance."""
    texts = {
        "contents": (
            f"Snapshots are of iterations {', '.join(map(str, iterations)) or 'none'} of {done}. "
            "Feature maps, their gradients and other temporaries are captured after their last write, inputs at the "
            "start of the backward pass, and weights, their gradients and optimizer state before the optimizer's step. "
            "Sizes are of all bytes; the bytes of large allocations are sampled pages, within the file's budget."
        ),
        "allocations": (
            "Derived: each storage of PyTorch is an allocation at an assigned address, a multiple of 512 B. A "
            "feature map keeps its address throughout; temporaries are allocated and freed as in PyTorch."
        ),
        "copies": "Derived: an iteration's inputs are copied to the device before it.",
        "end": end,
    }
    if graph is None:
        texts["kernels"] = "The script ended before it had completed an observed iteration: the trace has no kernels."
    else:
        texts["kernels"] = (
            f"The kernels are those of iteration {graph.iteration}; every other iteration counts as many launches."
        )
    return texts


class _Assembly:
    def __init__(
        self,
        writer: TraceWriter,
        spool: Spool,
        graph: OperatorGraph | None,
        kernels: GraphKernels | None,
        iterations: list[int],
        snapshot_bytes: int,
    ) -> None:
        self.writer, self.spool, self.graph, self.iterations = writer, spool, graph, iterations
        self.snapshot_bytes = snapshot_bytes  # bytes of contents of a snapshot
        self.pool = MemoryPool(_ARENA, alignment=ALIGNMENT)
        #: By name and bytes of a storage: the number of its allocation, and its address.
        self.lasting: dict[tuple[str, int], tuple[int, int]] = {}
        self.transient: dict[tuple[str, int], tuple[int, int]] = {}
        self.graph_kernels = kernels
        self.kernels = self.before_step = 0
        if graph is not None and kernels is not None:
            self.kernels = sum(kernels.counts)
            phases = [operator.phase for operator in graph.operators]
            self.before_step = sum(n for n, phase in zip(kernels.counts, phases, strict=True) if phase != "optimizer")

    def write(self) -> TorchCaptureSummary:
        self._allocate_lasting()
        seen_bytes = 0
        for iteration in self.iterations:
            seen_bytes += self._snapshot(self.spool.snapshot(iteration))
        if self.graph is not None:
            self._iteration(self.graph)
            for snapshot, iteration in enumerate(self.iterations):
                seen_bytes += self._values(snapshot, self.spool.snapshot(iteration), self.transient)
        return TorchCaptureSummary(len(self.iterations), len(self.lasting), seen_bytes, self.kernels)

    def _allocate(self, name: str, size: int) -> tuple[int, int]:
        base = FIRST_BASE + self.pool.allocate(size)
        return self.writer.add_allocation(name, base, size), base

    def _allocate_lasting(self) -> None:
        """Allocate the permanent storages of the run, in the order of their roles in `_LASTING`."""
        roles: dict[tuple[str, int], str] = {}
        for iteration in self.iterations:
            storages = self.spool.snapshot(iteration).storages
            roles.update({(one.name, one.bytes): one.role for one in storages if one.role in _LASTING})
        if self.graph is not None:
            roles.update({(s.name, s.bytes): s.role for s in self.graph.storages if s.role in _LASTING})
        for name, size in sorted(roles, key=lambda key: _LASTING.index(roles[key])):
            if size:
                self.lasting[name, size] = self._allocate(name, size)

    def _snapshot(self, taken: SpooledSnapshot) -> int:
        loss = "" if taken.loss is None else f", loss {taken.loss:.4f}"
        point = taken.iteration * self.kernels + self.before_step
        snapshot = self.writer.add_snapshot(point, f"iteration {taken.iteration}{loss}")
        return self._values(snapshot, taken, self.lasting)

    def _values(
        self, snapshot: int, taken: SpooledSnapshot, allocations: dict[tuple[str, int], tuple[int, int]]
    ) -> int:
        """Write the values of some allocations; return the number of bytes."""
        total = 0
        keep = contents_budgets([storage.bytes for storage in taken.storages], self.snapshot_bytes)
        for storage, budget in zip(taken.storages, keep, strict=True):
            if (storage.name, storage.bytes) not in allocations:
                continue
            number, _ = allocations[storage.name, storage.bytes]
            self.writer.add_size_map(snapshot, number, storage.classes, taken.compressor)
            pages, data = resample_pages(storage.pages, storage.data, budget, 0)
            if len(data):
                self.writer.add_contents(snapshot, number, data, page_bytes=PAGE_BYTES, pages=pages)
            total += storage.bytes
        return total

    def _iteration(self, graph: OperatorGraph) -> None:
        """Write the kernels, and between them the temporary allocations."""
        allocations: dict[int, tuple[int, int]] = {}  # by storage: number, address
        allocated: dict[int, list[int]] = {}
        freed: dict[int, list[int]] = {}
        for number, storage in enumerate(graph.storages):
            if (storage.name, storage.bytes) in self.lasting:
                allocations[number] = self.lasting[storage.name, storage.bytes]
            elif storage.bytes:
                allocated.setdefault(storage.alloc_operator or 0, []).append(number)
                if storage.free_operator is not None:
                    freed.setdefault(storage.free_operator, []).append(number)
        for number, storage in enumerate(graph.storages):
            if storage.role == "input" and number in allocations:
                self.writer.memcpy("htod", allocations[number][1], storage.bytes)
        assert self.graph_kernels is not None
        done = graph.iteration * self.kernels
        for number in range(len(graph.operators)):
            for storage_number in allocated.get(number, ()):
                storage = graph.storages[storage_number]
                allocations[storage_number] = self._allocate(storage.name, storage.bytes)
                self.transient[storage.name, storage.bytes] = allocations[storage_number]
            for kernel in self.graph_kernels.kernels_of(
                number, lambda storage: allocations[storage][1] if storage in allocations else 0
            ):
                write_kernel(self.writer, kernel, done)
                done += 1
            for storage_number in freed.get(number, ()):
                allocation, base = allocations.pop(storage_number)
                self.writer.free_allocation(allocation)
                self.pool.release(base - FIRST_BASE)
