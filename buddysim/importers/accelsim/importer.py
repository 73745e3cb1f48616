"""From a kernelslist to a trace file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.compress import UNKNOWN_CLASS, entry_classes
from buddysim.importers.accelsim.footprint import Footprint, Range, merged, without
from buddysim.importers.accelsim.image import MemoryImage
from buddysim.importers.accelsim.kernel_file import KernelTrace
from buddysim.importers.accelsim.kernelslist import Copy, Free, KernelFile, KernelsList, Malloc, read_kernelslist
from buddysim.importers.accelsim.opcodes import timing_of
from buddysim.trace.format import LINE_BYTES, PAGE_BYTES
from buddysim.trace.model import Provenance
from buddysim.trace.writer import TraceWriter

_MAX_SNAPSHOT_BYTES = 1 << 36
_READ_BYTES = 1 << 24


@dataclass(frozen=True)
class SnapshotFile:
    """Memory contents from elsewhere: bytes that lie at `address` after `point` launches."""

    path: Path
    address: int
    point: int


@dataclass
class Options:
    """What an import may be told.

    Parameters
    ----------
    skip_missing : go on without kernel files that don't exist
    include_local : make operations of local memory too
    snapshots : memory contents to take in
    contents_every : of the pages of 8 KiB whose values are known, keep the bytes of every n-th; 0: none. Size maps are
        always of all that is known
    source, licence : for the trace's provenance
    command : likewise
    compression_level : of the trace file
    """

    skip_missing: bool = False
    include_local: bool = False
    snapshots: Sequence[SnapshotFile] = ()
    contents_every: int = 1
    source: str = ""
    licence: str = ""
    command: str = ""
    compression_level: int = 9


@dataclass
class Summary:
    """What an import did."""

    kernels: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    allocations: int = 0
    snapshots: int = 0


@dataclass
class _Plan:
    """What the first reading found."""

    present: dict[int, KernelFile] = field(default_factory=dict)  # by command index
    footprint: Footprint = field(default_factory=Footprint)
    counts: dict[str, int] = field(default_factory=dict)
    latency_sources: dict[str, None] = field(default_factory=dict)
    unknown_opcodes: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    versions: set[int] = field(default_factory=set)


def import_accelsim(
    kernelslist: str | os.PathLike[str],
    output: str | os.PathLike[str],
    options: Options | None = None,
    progress: Callable[[str], object] = lambda what: None,
) -> Summary:
    """Convert the traces that a kernelslist names into one trace file.

    Every file is read twice: for the allocations, which must be known first, and for the operations. Memory is bounded
    by the largest thread block, the memory contents whose values are known, and 24 B per instruction of a raw trace.

    Parameters
    ----------
    kernelslist : path of `kernelslist` or `kernelslist.g`
    output : trace file to write
    options : what to do about what is missing, and what to add
    progress : told what is being read
    """
    options = options or Options()
    commands = read_kernelslist(Path(kernelslist))
    plan = _survey(commands, options, progress)
    provenance = _provenance(commands, plan, options)
    summary = Summary(counts=plan.counts, warnings=plan.warnings)
    with TraceWriter(output, provenance, compression_level=options.compression_level) as writer:
        _Conversion(commands, plan, options, writer, summary, progress).run()
    return summary


def parse_snapshot(text: str) -> list[SnapshotFile]:
    """``FILE@POINT``: a file named after the address of its bytes, such as 0x7f0000000000.bin, or a folder of those."""
    name, at, point = text.rpartition("@")
    if not at or not name or not re.fullmatch(r"[0-9]{1,18}", point, re.ASCII):
        raise BuddysimError(f"snapshot {text!r}: expected FILE@POINT, with the number of kernels completed before it")
    path = Path(name)
    if not path.exists():
        raise BuddysimError(f"{path}: no such file or folder")
    files = sorted(path.glob("*.bin")) if path.is_dir() else [path]
    if not files:
        raise BuddysimError(f"{path}: no .bin files, expected some named after the address of their bytes")
    return [SnapshotFile(file, _address_in_name(file), int(point)) for file in files]


def _address_in_name(path: Path) -> int:
    match = re.fullmatch(r"(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,19})\.bin", path.name, re.ASCII)
    address = int(match.group(1), 0 if match.group(1)[:2] in ("0x", "0X") else 10) if match else -1
    n = path.stat().st_size
    if not 0 <= address < 1 << 57:
        raise BuddysimError(f"{path}: expected a name such as 0x7f0000000000.bin, the address of its bytes")
    if n > _MAX_SNAPSHOT_BYTES:
        raise BuddysimError(f"{path}: {n} bytes, at most {_MAX_SNAPSHOT_BYTES} are possible")
    return address


def _survey(commands: KernelsList, options: Options, progress: Callable[[str], object]) -> _Plan:
    """Read all kernels once: what is there, what they touch, how much it is."""
    plan = _Plan()
    if commands.ignored:
        names = ", ".join(sorted({repr(name[:30]) for name in commands.ignored})[:3])
        plan.warnings.append(
            f"{commands.path}: ignored {len(commands.ignored)} lines that are no known command: {names}"
        )
    for index, command in enumerate(commands.commands):
        if not isinstance(command, KernelFile):
            continue
        if not command.path.is_file():
            problem = f"{commands.path}: line {command.line}: the kernel file {command.path.name} is missing"
            if not options.skip_missing:
                raise BuddysimError(f"{problem} (--skip-missing goes on without it)")
            plan.warnings.append(f"{problem}; skipped")
            continue
        progress(f"surveying {command.path.name}")
        blocks = 0
        with KernelTrace(command.path, include_local=options.include_local) as kernel:
            for block_records, _, ops, lines, pcs in kernel.records():
                blocks += len(block_records)
                plan.footprint.add(kernel.header.name, pcs, ops["n_lines"], lines)
            if not blocks:
                plan.warnings.append(f"{command.path}: a header without thread blocks; skipped")
                continue
            plan.present[index] = command
            for name, count in kernel.counts.items():
                plan.counts[name] = plan.counts.get(name, 0) + count
            plan.latency_sources[timing_of(kernel.header.binary_version).source] = None
            plan.unknown_opcodes |= kernel.unknown_opcodes
            plan.versions.add(kernel.header.version)
    if not plan.present:
        raise BuddysimError(f"{commands.path}: none of its kernels has instructions")
    if plan.unknown_opcodes:
        names = ", ".join(sorted(plan.unknown_opcodes)[:8])
        plan.warnings.append(f"{len(plan.unknown_opcodes)} opcodes are unknown and take an integer's latency: {names}")
    return plan


def _provenance(commands: KernelsList, plan: _Plan, options: Options) -> Provenance:
    counts = plan.counts
    mallocs = any(isinstance(command, Malloc) for command in commands.commands)
    versions = ", ".join(str(version) for version in sorted(plan.versions))
    assumptions = {
        "gaps": "none: every instruction was traced",
        "dependencies": (
            "from the registers that the trace names (not predicates); execution latencies: "
            + "; ".join(plan.latency_sources)
        ),
        "contents": "unknown but for values that stores, copies or given snapshots tell",
        "allocations": (
            ("cudaMalloc records" if mallocs else "no cudaMalloc records: every copied range is an allocation")
            + "; memory touched elsewhere is split where instructions' ranges don't overlap (rule in "
            "docs/accelsim-import.md); sizes in whole 128 B lines"
        ),
        "local memory": (
            "included, 4 B words of neighbouring threads side by side" if options.include_local else "left out"
        ),
        "counts": (
            f"{counts['warp_instructions']} warp instructions, {counts['lane_instructions']} lane instructions, "
            f"{counts['memory_lines']} memory lines ({counts['predicated_off']} predicated off, "
            f"{counts['shared_lines']} of shared and {counts['local_lines']} of local memory, "
            f"{counts['other_lines']} others), {counts['barriers']} barriers; "
            f"{counts['lines']} lines of 128 B, {counts['sectors']} sectors"
        ),
    }
    return Provenance(
        tool=f"Accel-Sim tracer version {versions}, imported by buddysim",
        version=buddysim.__version__,
        source=options.source or commands.path.parent.resolve().name,
        licence=options.licence,
        command=options.command,
        assumptions=assumptions,
    )


class _Conversion:
    """The second reading: events, operations and values in order."""

    def __init__(
        self,
        commands: KernelsList,
        plan: _Plan,
        options: Options,
        writer: TraceWriter,
        summary: Summary,
        progress: Callable[[str], object],
    ) -> None:
        self.commands, self.plan, self.options = commands, plan, options
        self.writer, self.summary, self.progress = writer, summary, progress
        self.image = MemoryImage()
        self.live: dict[int, tuple[int, int, int]] = {}  # base -> (first line, line after the last, index)
        self.given = list(options.snapshots)

    def run(self) -> None:
        """Write everything."""
        launches = sum(isinstance(command, KernelFile) for command in self.commands.commands)
        for snapshot in self.given:
            if snapshot.point > launches:
                raise BuddysimError(
                    f"{snapshot.path}: the snapshot is after {snapshot.point} kernels, the list has {launches}"
                )
        self._infer()
        point = 0
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
                    self._take_snapshot(point)
                    if index in self.plan.present:
                        self._kernel(command, point)
                    point += 1
        self._take_snapshot(point)

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
        """Allocations that no record names; they live from the start."""
        commands = self.commands.commands
        recorded = [_lines(command) for command in commands if isinstance(command, Malloc) and command.bytes]
        copies = merged([_lines(command) for command in commands if isinstance(command, Copy) and command.bytes])
        if recorded:
            named = [piece for copy in copies for piece in without(copy, merged(recorded))]
            known = recorded + named
        else:
            known = named = copies
        for lines in named:
            self._add(f"copied {lines[0] * LINE_BYTES:#x}", -1 - len(self.live), lines)
        for lines in self.plan.footprint.outside(known):
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
                f"{command.payload}: {command.payload.stat().st_size} bytes, expected the {command.bytes} of the copy "
                f"in line {command.line} of {self.commands.path}"
            )
        self._load(command.payload, command.address)

    def _load(self, path: Path, address: int) -> None:
        with path.open("rb") as file:
            while data := file.read(_READ_BYTES):
                self.image.write(address, data)
                address += len(data)

    def _kernel(self, command: KernelFile, ordinal: int) -> None:
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
                ordinal,
            )
            for blocks, warps, ops, lines, _ in kernel.records():
                if len(blocks):
                    self.writer.add_blocks(blocks, warps, ops, lines)
            self.writer.end_kernel()
        self.summary.kernels += 1

    def _take_snapshot(self, point: int) -> None:
        """Write what is known of memory now, if that has changed."""
        for snapshot in [given for given in self.given if given.point == point]:
            self.progress(f"taking in {snapshot.path.name}")
            self._load(snapshot.path, snapshot.address)
        if not self.image.changed:
            return
        index = self.writer.add_snapshot(point, f"after {point} kernels")
        for first, last, allocation in sorted(self.live.values()):
            self._write_values(index, allocation, first * LINE_BYTES, (last - first) * LINE_BYTES)
        self.image.clear_changed()
        self.summary.snapshots += 1

    def _write_values(self, snapshot: int, allocation: int, base: int, n: int) -> None:
        """Size map of the entries that are known whole; if any have changed, bytes of the pages that are."""
        keep_contents = self.options.contents_every > 0 and self.image.changed_in(base, n)
        classes = np.full(n // LINE_BYTES, UNKNOWN_CLASS, dtype=np.uint8)
        pages: list[np.ndarray[tuple[int], np.dtype[np.uint8]]] = []
        numbers: list[int] = []
        n_known = 0
        for at in range(0, n, _READ_BYTES):
            data, known = self.image.read(base + at, min(_READ_BYTES, n - at))
            entries = known.reshape(-1, LINE_BYTES).all(axis=1)
            if not entries.any():
                continue
            found = entry_classes(data)
            classes[at // LINE_BYTES : (at + len(data)) // LINE_BYTES][entries] = found[entries]
            if not keep_contents:
                continue
            for start in range(0, len(data), PAGE_BYTES):
                if known[start : start + PAGE_BYTES].all():
                    if n_known % self.options.contents_every == 0:
                        pages.append(data[start : start + PAGE_BYTES].copy())
                        numbers.append((at + start) // PAGE_BYTES)
                    n_known += 1
        if (classes != UNKNOWN_CLASS).any():
            self.writer.add_size_map(snapshot, allocation, classes)
        if pages:
            whole = len(pages) == -(-n // PAGE_BYTES)
            self.writer.add_contents(
                snapshot,
                allocation,
                np.concatenate(pages),
                None if whole else np.array(numbers, dtype=np.uint32),
                PAGE_BYTES,
            )


def _lines(command: Malloc | Copy) -> Range:
    return command.address // LINE_BYTES, -(-(command.address + command.bytes) // LINE_BYTES)
