"""Makes the trace file of what a capture left in its spool."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.pool import Pool
from buddysim.capture.thinning import equally_spaced
from buddysim.capture.torch.kernels import ASSUMED, Operand, write_operator
from buddysim.capture.torch.spool import Moment, Spool
from buddysim.formats.operator_graph import OperatorGraph
from buddysim.trace import Provenance, TraceWriter

FIRST_BASE = 0x7F00_0000_0000
ALIGNMENT = 512
_ARENA = 1 << 44
#: Storages that have a place of their own throughout.
_STAYS = ("weight", "buffer", "gradient", "optimizer", "input", "feature_map")


@dataclass(frozen=True)
class Summary:
    """What the trace file holds."""

    snapshots: int
    allocations: int
    bytes_seen: int
    kernels: int
    feature_map_bytes: int


def assemble(
    spool: Spool, output: Path, snapshots: int, source: str, command: str, end: str, licence: str = "", level: int = 3
) -> Summary:
    """Writes the trace.

    Parameters
    ----------
    spool : what the script left
    output : the trace file
    snapshots : how many of them stay
    source, command, licence : for the provenance
    end : how the script ended
    level : of zstd
    """
    graph = spool.graph()
    taken = spool.iterations
    done = max([spool.progress().iterations, *(iteration + 1 for iteration in taken)], default=0)
    chosen = [taken[place] for place in _chosen(taken, done, snapshots)]
    import buddysim

    provenance = Provenance(
        tool="buddysim capture torch",
        version=buddysim.__version__,
        source=source,
        licence=licence,
        command=command,
        assumptions=ASSUMED | _said(graph, chosen, done, end),
    )
    with TraceWriter(output, provenance, compression_level=level) as writer:
        return _Assembly(writer, spool, graph, chosen).write()


def _chosen(taken: list[int], done: int, wanted: int) -> list[int]:
    """Places of the snapshots that stay: the first one and those nearest to equal distances."""
    if len(taken) <= wanted:
        return list(range(len(taken)))
    if wanted == 1:
        return [len(taken) - 1]
    rest = equally_spaced(taken[1:], max(done - 1, 1), wanted - 1)
    return [0, *(1 + place for place in rest)]


def _said(graph: OperatorGraph | None, chosen: list[int], done: int, end: str) -> dict[str, str]:
    """What the provenance says of the capture."""
    said = {
        "contents": f"of iterations {', '.join(map(str, chosen)) or 'none'} of {done}: feature maps, their gradients "
        "and everything else that passes when it was written last, inputs when the backward pass began, weights, their "
        "gradients and optimizer state before the optimizer's step; of allocations above the limit sampled pages, "
        "sizes of all",
        "allocations": "derived: one for each storage of PyTorch, at addresses of our own, in multiples of 512 B; a "
        "feature map has its place throughout; what only passes is placed and freed as PyTorch did",
        "copies": "derived: an iteration's inputs are copied to the device before it",
        "end": end,
    }
    if graph is None:
        said["kernels"] = "the script ended before it had completed an observed iteration: there are no kernels"
    else:
        said["kernels"] = (
            f"those of iteration {graph.iteration}; iterations without kernels count as many launches as it has"
        )
    return said


class _Assembly:
    def __init__(self, writer: TraceWriter, spool: Spool, graph: OperatorGraph | None, chosen: list[int]) -> None:
        self.writer, self.spool, self.graph, self.chosen = writer, spool, graph, chosen
        self.pool = Pool(_ARENA, alignment=ALIGNMENT)
        self.numbers: dict[tuple[str, int], tuple[int, int]] = {}
        self.passing: dict[tuple[str, int], tuple[int, int]] = {}
        self.kernels = 0
        self.before_step = 0
        if graph is not None:
            self.launched = [n for n, o in enumerate(graph.operators) if o.kind == "compute" and self._touches(n)]
            self.kernels = len(self.launched)
            self.before_step = sum(graph.operators[n].phase != "optimizer" for n in self.launched)

    def write(self) -> Summary:
        self._place_what_stays()
        seen = 0
        for iteration in self.chosen:
            seen += self._snapshot(self.spool.moment(iteration))
        if self.graph is not None:
            self._iteration(self.graph)
            for snapshot, iteration in enumerate(self.chosen):
                seen += self._values(snapshot, self.spool.moment(iteration), self.passing)
        maps = [s.bytes for s in self.graph.storages if s.role == "feature_map"] if self.graph else []
        return Summary(len(self.chosen), len(self.numbers), seen, self.kernels, sum(maps))

    def _touches(self, operator: int) -> bool:
        assert self.graph is not None
        found = self.graph.operators[operator]
        return any(self.graph.tensors[t].extent for t in (*found.inputs, *found.outputs))

    def _allocate(self, name: str, size: int) -> tuple[int, int]:
        base = FIRST_BASE + self.pool.allocate(size)
        return self.writer.add_allocation(name, base, size), base

    def _stay(self, name: str, size: int) -> None:
        if size and (name, size) not in self.numbers:
            self.numbers[name, size] = self._allocate(name, size)

    def _place_what_stays(self) -> None:
        """Weights first, then what training keeps of them, then feature maps in the order in which they are made."""
        found: dict[tuple[str, int], str] = {}
        for iteration in self.chosen:
            seen = self.spool.moment(iteration).seen
            found.update({(one.name, one.bytes): one.role for one in seen if one.role in _STAYS})
        if self.graph is not None:
            found.update({(s.name, s.bytes): s.role for s in self.graph.storages if s.role in _STAYS})
        for name, size in sorted(found, key=lambda key: _STAYS.index(found[key])):
            self._stay(name, size)

    def _snapshot(self, moment: Moment) -> int:
        loss = "" if moment.loss is None else f", loss {moment.loss:.4f}"
        point = moment.iteration * self.kernels + self.before_step
        snapshot = self.writer.add_snapshot(point, f"iteration {moment.iteration}{loss}")
        return self._values(snapshot, moment, self.numbers)

    def _values(self, snapshot: int, moment: Moment, places: dict[tuple[str, int], tuple[int, int]]) -> int:
        """Values of the allocations that are in `places`; gives their bytes."""
        total = 0
        for seen in moment.seen:
            if (seen.name, seen.bytes) not in places:
                continue
            number, _ = places[seen.name, seen.bytes]
            self.writer.add_size_map(snapshot, number, seen.classes)
            if seen.pages is None:
                self.writer.add_contents(snapshot, number, seen.data)
            elif len(seen.pages):
                self.writer.add_contents(snapshot, number, seen.data, page_bytes=8192, pages=seen.pages)
            total += seen.bytes
        return total

    def _iteration(self, graph: OperatorGraph) -> None:
        """The kernels, and around them what lives for a while only."""
        places: dict[int, tuple[int, int]] = {}
        births: dict[int, list[int]] = {}
        deaths: dict[int, list[int]] = {}
        for number, storage in enumerate(graph.storages):
            if (storage.name, storage.bytes) in self.numbers:
                places[number] = self.numbers[storage.name, storage.bytes]
            elif storage.bytes:
                births.setdefault(storage.born or 0, []).append(number)
                if storage.died is not None:
                    deaths.setdefault(storage.died, []).append(number)
        for number, storage in enumerate(graph.storages):
            if storage.role == "input" and number in places:
                self.writer.memcpy("htod", places[number][1], storage.bytes)
        launched = {number: place for place, number in enumerate(self.launched)}
        for number, operator in enumerate(graph.operators):
            for storage_number in births.get(number, ()):
                storage = graph.storages[storage_number]
                places[storage_number] = self._allocate(storage.name, storage.bytes)
                self.passing[storage.name, storage.bytes] = places[storage_number]
            if number in launched:
                operands = []
                for written, tensors in ((False, operator.inputs), (True, operator.outputs)):
                    ranges = {
                        (places[t.storage][1] + t.offset, t.extent)
                        for t in (graph.tensors[index] for index in tensors)
                        if t.extent
                    }
                    operands += [Operand(address, size, written) for address, size in sorted(ranges)]
                name = f"{f'{operator.phase} {operator.module}'.strip()}: {operator.name}"
                ordinal = graph.iteration * self.kernels + launched[number]
                write_operator(self.writer, name, operands, operator.flops, ordinal)
            for storage_number in deaths.get(number, ()):
                allocation, base = places.pop(storage_number)
                self.writer.free_allocation(allocation)
                self.pool.release(base - FIRST_BASE)


def check_output(output: Path) -> None:
    """Refuses a trace file that couldn't be written, before the script runs."""
    if output.is_dir():
        raise BuddysimError(f"{output}: is a folder: expected a file to write")
    if not output.parent.is_dir():
        raise BuddysimError(f"{output}: there is no folder {output.parent} to write it in")
