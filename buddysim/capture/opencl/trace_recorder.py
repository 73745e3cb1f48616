"""Messages of the traced program -> sections of the trace file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from buddysim.base.output import Output
from buddysim.capture.opencl.snapshots import Candidates, Reason, SelectedSnapshot
from buddysim.capture.opencl.wire import MessageType, ReceivedMessage
from buddysim.compress import ENTRY_BYTES, entry_classes
from buddysim.trace import Provenance, TraceWriter
from buddysim.trace.format import PAGE_BYTES, REPLAY_LABEL
from buddysim.trace.records import BLOCK_DTYPE, LINE_DTYPE, OP_DTYPE, WARP_DTYPE

_RESERVED_NAME_BYTES = 96  # bytes, for the name of a buffer that is used before it is named
_RESERVED_PROVENANCE_BYTES = 16384  # bytes, in the provenance for what only the end shows
_MAX_NOTES_BYTES = 6000
_UNKNOWN_END = "the capture itself was interrupted: the trace may end anywhere, without snapshots"
_COPIES: tuple[Literal["htod", "dtoh", "dtod"], ...] = ("htod", "dtoh", "dtod")


#: Work-items that a work-group may have on GPUs; PoCL allows 4,096.
LARGEST_GROUP = 1024


@dataclass
class ProgramBuffer:
    """A buffer of the program."""

    base: int
    bytes: int
    name: str
    allocation: int | None = None
    written_name: str = ""


@dataclass
class TraceCounts:
    """Counts of the trace file."""

    launches: int = 0
    kernels: int = 0
    operations: int = 0
    lane_accesses: int = 0
    outside: int = 0
    snapshots: int = 0
    allocations: int = 0
    widest_group: int = 0  # work-items of the largest work-group, and the kernel that has it
    widest_kernel: str = ""

    def note_group(self, kernel: str, work_items: int) -> None:
        """A launch with work-groups of that many work-items."""
        if work_items > self.widest_group:
            self.widest_group, self.widest_kernel = work_items, kernel

    @property
    def too_wide(self) -> str | None:
        """Problem of work-groups that are too large for a GPU; None if there are none."""
        if self.widest_group <= LARGEST_GROUP:
            return None
        return (
            f"kernel {self.widest_kernel} has work-groups of {self.widest_group:,} work-items: GPUs take at most "
            f"{LARGEST_GROUP:,}, and run refuses groups that an SM cannot hold: with --report-as-gpu programs choose "
            "for a GPU"
        )


@dataclass
class CaptureProblems:
    """Missing parts of the trace file."""

    untraced: dict[str, int] = field(default_factory=dict)  # kernel and reason -> its first launch
    notes: dict[str, int] = field(default_factory=dict)  # text -> launches before
    complete: bool = False  # the program announced its end


class TraceRecorder:
    """Writes one trace file.

    What isn't a kernel is held back until the next launch, because a buffer is named by the kernel argument that it is;
    a name that comes later is written over the first one at the end.

    Parameters
    ----------
    output : the trace file; its part is written
    provenance : at the beginning; the end adds to it
    snapshots : how many to keep
    candidates : how many to choose from
    contents_every : keep the bytes of every n-th page of 8 KiB, 0: none; size maps are always of all bytes
    level : of zstd
    compressor : of the size maps
    """

    def __init__(
        self,
        output: Output,
        provenance: Provenance,
        snapshots: int,
        candidates: int,
        contents_every: int,
        level: int,
        compressor: str,
    ) -> None:
        self._provenance = provenance
        self._writer = TraceWriter(
            output,
            replace(provenance, assumptions=provenance.assumptions | {"end": _UNKNOWN_END}),
            compression_level=level,
            reserved_provenance_bytes=_RESERVED_PROVENANCE_BYTES,
        )
        self._n_snapshots, self._contents_every, self._compressor = snapshots, contents_every, compressor
        self._candidates = Candidates(candidates, contents_every, lambda data: entry_classes(data, compressor))
        self._buffers: dict[int, ProgramBuffer] = {}
        self._held: list[Callable[[], object]] = []
        self._kernel = ""
        self.counts, self.problems = TraceCounts(), CaptureProblems()

    def receive(self, message: ReceivedMessage) -> None:
        """Handles one message."""
        _HANDLERS[message.type](self, message)

    def name_buffers(self, names: Sequence[str]) -> None:
        """Names buffers, in the order of their creation, as the program calls them; before `finish`."""
        for buffer, name in zip(self._buffers.values(), names, strict=True):
            buffer.name = name

    def _allocate(self, message: ReceivedMessage) -> None:
        number, base, size = message.numbers
        buffer = self._buffers[number] = ProgramBuffer(base, size, f"buffer {number}")

        def write() -> None:
            buffer.allocation = self._writer.add_allocation(
                buffer.name, buffer.base, buffer.bytes, reserved_name_bytes=_RESERVED_NAME_BYTES
            )
            buffer.written_name = buffer.name
            self.counts.allocations += 1

        self._held.append(write)

    def _free(self, message: ReceivedMessage) -> None:
        buffer = self._buffers[message.numbers[0]]

        def write() -> None:
            if buffer.allocation is not None:
                self._writer.free_allocation(buffer.allocation)

        self._held.append(write)

    def _name(self, message: ReceivedMessage) -> None:
        self._buffers[message.numbers[0]].name = message.text

    def _copy(self, message: ReceivedMessage) -> None:
        kind, address, size, source = message.numbers
        what = _COPIES[kind]
        self._held.append(lambda: self._writer.memcpy(what, address, size, source if what == "dtod" else None))

    def _fill(self, message: ReceivedMessage) -> None:
        address, size, value = message.numbers
        self._held.append(lambda: self._writer.memset(address, size, value if value < 256 else None))

    def _follows(self, launch_index: int) -> None:
        """A launch follows, traced or not."""
        self._candidates.launched()
        self._write_held()
        self.counts.launches = launch_index + 1

    def _native(self, message: ReceivedMessage) -> None:
        self._follows(message.numbers[0])

    def _launch(self, message: ReceivedMessage) -> None:
        launch_index, stream, shared, code, *dims = message.numbers
        self._follows(launch_index)
        grid, block = (dims[0], dims[1], dims[2]), (dims[3], dims[4], dims[5])
        self._kernel = message.text
        self.counts.note_group(message.text, block[0] * block[1] * block[2])
        self._writer.begin_kernel(
            message.text,
            grid,
            block,
            shared_memory_bytes=shared,
            stream=stream,
            launch_index=launch_index,
            code_bytes=code,
        )
        self.counts.kernels += 1

    def _records(self, message: ReceivedMessage) -> None:
        arrays, at = [], 0
        for dtype, count in zip((BLOCK_DTYPE, WARP_DTYPE, OP_DTYPE, LINE_DTYPE), message.numbers, strict=True):
            arrays.append(np.frombuffer(message.data, dtype, count, at))
            at += dtype.itemsize * count
        blocks, warps, ops, lines = arrays
        self._writer.add_blocks(blocks, warps, ops, lines)
        self.counts.operations += len(ops)

    def _launch_end(self, message: ReceivedMessage) -> None:
        accesses, outside = message.numbers
        self._writer.end_kernel()
        self._kernel = ""
        self.counts.lane_accesses += accesses
        self.counts.outside += outside

    def _snapshot(self, message: ReceivedMessage) -> None:
        launch_index, reasons = message.numbers
        self._candidates.begin(launch_index, Reason(reasons))

    def _contents(self, message: ReceivedMessage) -> None:
        number, offset = message.numbers
        self._candidates.add(number, offset, message.data)

    def _snapshot_end(self, message: ReceivedMessage) -> None:
        self._candidates.end()

    def _untraced(self, message: ReceivedMessage) -> None:
        self.problems.untraced.setdefault(message.text, message.numbers[0])

    def _note(self, message: ReceivedMessage) -> None:
        self.problems.notes.setdefault(message.text, message.numbers[0])

    def _done(self, message: ReceivedMessage) -> None:
        self.counts.launches = message.numbers[0]
        self.problems.complete = True

    def _hello(self, message: ReceivedMessage) -> None:
        pass

    def _write_held(self) -> None:
        held, self._held = self._held, []
        for write in held:
            write()

    def finish(self, assumptions: dict[str, str]) -> None:
        """Writes what was held back, the snapshots that stay, and what only the end shows of the program.

        Parameters
        ----------
        assumptions : for the provenance; ``end`` says how the program ended
        """
        if self._kernel:
            self._writer.end_kernel()
            self.problems.notes[f"kernel {self._kernel} was interrupted: its last work-groups are not in the trace"] = (
                self.counts.launches - 1
            )
            self._kernel = ""
        self._write_held()
        for selected in self._candidates.for_file(self._n_snapshots):
            self._write_snapshot(selected)
        for buffer in self._buffers.values():
            if buffer.allocation is not None and buffer.written_name != buffer.name:
                self._writer.rename_allocation(buffer.allocation, buffer.name)
        self._writer.replace_provenance(
            replace(self._provenance, assumptions=self._provenance.assumptions | assumptions | self._missing())
        )
        self._writer.close()

    def abort(self) -> None:
        """Gives up; what has been written stays in the part."""
        self._writer.abort()

    def _missing(self) -> dict[str, str]:
        """Statements on missing parts, for the provenance."""
        texts = {}
        if self.problems.untraced:
            texts["untraced"] = _cut("; ".join(self.problems.untraced))
        if self.problems.notes:
            notes = (f"after {launches} launches: {text}" for text, launches in self.problems.notes.items())
            texts["unknown"] = _cut("; ".join(notes))
        return texts

    def _write_snapshot(self, selected: SelectedSnapshot) -> None:
        label = "before the first launch" if selected.launch_index == 0 else f"after {selected.launch_index} launches"
        snapshot = self._writer.add_snapshot(
            selected.launch_index, label if selected.of_run else f"{REPLAY_LABEL} {label}"
        )
        self.counts.snapshots += 1
        for number in sorted(selected.sizes.buffers):
            buffer = self._buffers.get(number)
            if buffer is None or buffer.allocation is None:
                continue
            sizes = self._candidates.sizes(selected.sizes, number)
            if len(sizes) != -(-buffer.bytes // ENTRY_BYTES):  # cut off
                continue
            self._writer.add_size_map(snapshot, buffer.allocation, sizes, self._compressor)
            data = self._candidates.contents(selected.contents, number)
            if data is not None and self._contents_every == 1:
                self._writer.add_contents(snapshot, buffer.allocation, data)
            elif data is not None:
                pages = np.arange(0, -(-buffer.bytes // PAGE_BYTES), self._contents_every, dtype=np.uint32)
                self._writer.add_contents(snapshot, buffer.allocation, data, pages)


def _cut(text: str) -> str:
    return text if len(text.encode()) <= _MAX_NOTES_BYTES else text[: _MAX_NOTES_BYTES // 4] + " ..."


_HANDLERS: dict[MessageType, Callable[[TraceRecorder, ReceivedMessage], None]] = {
    MessageType.HELLO: TraceRecorder._hello,
    MessageType.ALLOCATE: TraceRecorder._allocate,
    MessageType.FREE: TraceRecorder._free,
    MessageType.NAME: TraceRecorder._name,
    MessageType.COPY: TraceRecorder._copy,
    MessageType.FILL: TraceRecorder._fill,
    MessageType.KERNEL: TraceRecorder._launch,
    MessageType.RECORDS: TraceRecorder._records,
    MessageType.KERNEL_END: TraceRecorder._launch_end,
    MessageType.SNAPSHOT: TraceRecorder._snapshot,
    MessageType.CONTENTS: TraceRecorder._contents,
    MessageType.SNAPSHOT_END: TraceRecorder._snapshot_end,
    MessageType.UNTRACED: TraceRecorder._untraced,
    MessageType.NOTE: TraceRecorder._note,
    MessageType.DONE: TraceRecorder._done,
    MessageType.NATIVE: TraceRecorder._native,
}
