"""The second reading of a trace, which writes the trace file: events, operations and values in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_input
from buddysim.base.output import Output, check_output
from buddysim.compress import UNKNOWN_CLASS, entry_classes
from buddysim.importers.accelsim.accessed_lines import Range, merge_ranges, subtract_ranges
from buddysim.importers.accelsim.image import MemoryImage
from buddysim.importers.accelsim.import_options import AccelsimImportOptions
from buddysim.importers.accelsim.kernel_file import KernelTrace
from buddysim.importers.accelsim.kernelslist import Copy, Free, KernelFile, KernelsList, Malloc, read_kernelslist
from buddysim.importers.accelsim.survey import Survey, provenance_of, survey_kernels
from buddysim.importers.verify_output import verify_output
from buddysim.trace.format import LINE_BYTES, PAGE_BYTES, SIZE_MAP_BLOCK_ENTRIES
from buddysim.trace.writer import TraceWriter

_READ_BYTES = 1 << 24  # a size map's block is a multiple of that
#: A size map has a class for every entry: half a byte, known or not. What a run can hold, as `replay` numbers entries.
_LARGEST_WITH_VALUES = 512 << 30


@dataclass
class AccelsimImportSummary:
    """Counts and warnings of an import."""

    kernels: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    allocations: int = 0
    snapshots: int = 0


def import_accelsim(
    kernelslist: str | os.PathLike[str],
    output: str | os.PathLike[str],
    options: AccelsimImportOptions | None = None,
    progress: Callable[[str], object] = lambda what: None,
) -> AccelsimImportSummary:
    """Convert the traces that a kernelslist names into one trace file.

    Every file is read twice: for the allocations, which must be known first, and for the operations. Memory is bounded
    by the largest thread block, the memory contents whose values are known, and 24 B per instruction of a raw trace.

    Parameters
    ----------
    kernelslist : path of `kernelslist` or `kernelslist.g`
    output : trace file to write
    options : treatment of missing files, and additional contents
    progress : called with the name of the file being read
    """
    options = options or AccelsimImportOptions()
    commands = read_kernelslist(Path(kernelslist))
    inputs = [commands.path, *_files_of(commands), *(snapshot.path for snapshot in options.snapshots)]
    check_output(output, inputs)
    survey = survey_kernels(commands, options, progress)
    provenance = provenance_of(commands, survey, options)
    summary = AccelsimImportSummary(counts=survey.counts, warnings=survey.warnings)
    with (
        Output(output, inputs) as whole,
        TraceWriter(whole, provenance, compression_level=options.compression_level) as writer,
    ):
        _Conversion(commands, survey, options, writer, summary, progress).run()
        writer.close()
        progress("checking the trace file")
        verify_output(commands.path, whole.part)
    return summary


def _files_of(commands: KernelsList) -> Iterator[Path]:
    """Yield the files that a list names."""
    for command in commands.commands:
        if isinstance(command, KernelFile):
            yield command.path
        elif isinstance(command, Copy) and command.payload is not None:
            yield command.payload


class _Conversion:
    """State of the second reading."""

    def __init__(
        self,
        commands: KernelsList,
        survey: Survey,
        options: AccelsimImportOptions,
        writer: TraceWriter,
        summary: AccelsimImportSummary,
        progress: Callable[[str], object],
    ) -> None:
        self.commands, self.survey, self.options = commands, survey, options
        self.writer, self.summary, self.progress = writer, summary, progress
        self.image = MemoryImage()
        self.live: dict[int, tuple[int, int, int]] = {}  # base -> (first line, line after the last, index)
        self.snapshot_files = list(options.snapshots)

    def run(self) -> None:
        """Write the trace file."""
        launches = sum(isinstance(command, KernelFile) for command in self.commands.commands)
        for snapshot in self.snapshot_files:
            if snapshot.launch_index > launches:
                raise BuddysimError(
                    f"{snapshot.path}: the snapshot is after {snapshot.launch_index} kernels, the list has {launches}"
                )
        self._infer()
        launch_index = 0
        for index, command in enumerate(self.commands.commands):
            match command:
                case Malloc():
                    self._allocate(f"cudaMalloc {command.address:#x}", command)
                case Free():
                    if command.address in self.live:
                        self.writer.free_allocation(self.live.pop(command.address)[2])
                case Copy():
                    self._copy(command)
                case KernelFile():
                    self._take_snapshot(launch_index)
                    if index in self.survey.present:
                        self._kernel(command, launch_index, self.survey.code_bytes[index])
                    launch_index += 1
        self._take_snapshot(launch_index)

    def _allocate(self, name: str, command: Malloc) -> None:
        first, last = command.address // LINE_BYTES, -(-(command.address + command.bytes) // LINE_BYTES)
        if command.bytes and not any(a < last and first < b for a, b, _ in self.live.values()):
            self._add(name, command.address, (first, last))
        elif command.bytes:
            raise BuddysimError(
                f"{self.commands.path}: line {command.line}: the {command.bytes} bytes at {command.address:#x} overlap "
                "memory that is allocated already"
            )

    def _add(self, name: str, key: int, lines: Range) -> None:
        index = self.writer.add_allocation(name, lines[0] * LINE_BYTES, (lines[1] - lines[0]) * LINE_BYTES)
        self.live[key] = (*lines, index)
        self.summary.allocations += 1

    def _infer(self) -> None:
        """Add the inferred allocations, which exist from the start."""
        commands = self.commands.commands
        recorded = [_lines(command) for command in commands if isinstance(command, Malloc) and command.bytes]
        copies = merge_ranges([_lines(command) for command in commands if isinstance(command, Copy) and command.bytes])
        if recorded:
            named = [part for copy in copies for part in subtract_ranges(copy, merge_ranges(recorded))]
            known = recorded + named
        else:
            known = named = copies
        for lines in named:
            self._add(f"copied {lines[0] * LINE_BYTES:#x}", -1 - len(self.live), lines)
        for lines in self.survey.footprint.outside(known):
            self._add(f"touched {lines[0] * LINE_BYTES:#x}", -1 - len(self.live), lines)

    def _copy(self, command: Copy) -> None:
        if command.bytes:
            self.writer.memcpy(command.kind, command.address, command.bytes)
        if command.payload is None or command.kind != "htod":
            return
        if not command.payload.is_file():
            self.summary.warnings.append(
                f"{command.payload}: the copied bytes are missing; the copy stays without values"
            )
            return
        if command.payload.stat().st_size != command.bytes:
            raise BuddysimError(
                f"{command.payload}: {command.payload.stat().st_size} bytes: expected the {command.bytes} of the copy "
                f"in line {command.line} of {self.commands.path}"
            )
        self._load(command.payload, command.address)

    def _load(self, path: Path, address: int) -> None:
        with open_input(path, "file of memory contents") as file:
            while data := file.read(_READ_BYTES):
                self.image.write(address, data)
                address += len(data)

    def _kernel(self, command: KernelFile, launch_index: int, code_bytes: int) -> None:
        self.progress(f"converting {command.path.name}")
        with KernelTrace(command.path, include_local=self.options.include_local, image=self.image) as kernel:
            header = kernel.header
            self.writer.begin_kernel(
                header.name,
                header.grid,
                header.block,
                header.registers,
                header.shared_memory_bytes,
                header.stream,
                launch_index,
                code_bytes,
            )
            for blocks, warps, ops, lines, _ in kernel.records():
                if len(blocks):
                    self.writer.add_blocks(blocks, warps, ops, lines)
            self.writer.end_kernel()
        self.summary.kernels += 1

    def _take_snapshot(self, launch_index: int) -> None:
        """Write a snapshot of the known memory, if it has changed."""
        for snapshot in [file for file in self.snapshot_files if file.launch_index == launch_index]:
            self.progress(f"taking in {snapshot.path.name}")
            self._load(snapshot.path, snapshot.address)
        if not self.image.changed:
            return
        index = self.writer.add_snapshot(launch_index, f"after {launch_index} kernels")
        for first, last, allocation in sorted(self.live.values()):
            self._write_values(index, allocation, first * LINE_BYTES, (last - first) * LINE_BYTES)
        self.image.clear_changed()
        self.summary.snapshots += 1

    def _write_values(self, snapshot: int, allocation: int, base: int, n: int) -> None:
        """Write the size map of completely known entries and, if any changed, the bytes of completely known pages."""
        keep_contents = self.options.contents_every > 0 and self.image.changed_in(base, n)
        classes: dict[int, NDArray[np.uint8]] = {}  # by block of the size map
        pages: list[np.ndarray[tuple[int], np.dtype[np.uint8]]] = []
        numbers: list[int] = []
        n_known = 0
        for at in self._known_parts(base, n):
            data, known = self.image.read(base + at, min(_READ_BYTES, n - at))
            entries = known.reshape(-1, LINE_BYTES).all(axis=1)
            if not entries.any():
                continue
            sent_classes = entry_classes(data, self.options.compressor)
            number, first = divmod(at // LINE_BYTES, SIZE_MAP_BLOCK_ENTRIES)
            if number not in classes:
                classes[number] = np.full(SIZE_MAP_BLOCK_ENTRIES, UNKNOWN_CLASS, dtype=np.uint8)
            classes[number][first : first + entries.size][entries] = sent_classes[entries]
            if not keep_contents:
                continue
            for start in range(0, len(data), PAGE_BYTES):
                if known[start : start + PAGE_BYTES].all():
                    if n_known % self.options.contents_every == 0:
                        pages.append(data[start : start + PAGE_BYTES].copy())
                        numbers.append((at + start) // PAGE_BYTES)
                    n_known += 1
        if classes:
            if n > _LARGEST_WITH_VALUES:
                raise BuddysimError(
                    f"{self.commands.path}: {n} bytes at {base:#x}, of which some have values: expected at most "
                    f"{_LARGEST_WITH_VALUES}"
                )
            self.writer.add_size_map(snapshot, allocation, classes, self.options.compressor)
        if pages:
            whole = len(pages) == -(-n // PAGE_BYTES)
            self.writer.add_contents(
                snapshot,
                allocation,
                np.concatenate(pages),
                None if whole else np.array(numbers, dtype=np.uint32),
                PAGE_BYTES,
            )

    def _known_parts(self, base: int, n: int) -> list[int]:
        """Yield the offsets of the parts of an allocation with any known bytes."""
        offsets = np.array(self.image.known_pages(base, n), dtype=np.int64) * PAGE_BYTES - base
        ends = np.minimum(offsets + PAGE_BYTES - 1, n - 1)
        parts = np.unique(np.concatenate((np.maximum(offsets, 0) // _READ_BYTES, ends // _READ_BYTES)))
        return [int(part) * _READ_BYTES for part in parts]


def _lines(command: Malloc | Copy) -> Range:
    return command.address // LINE_BYTES, -(-(command.address + command.bytes) // LINE_BYTES)
