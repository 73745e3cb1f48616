"""Converts a bundle of an OpenCL capture to a trace file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_input
from buddysim.base.output import Output
from buddysim.base.parsers.streams import UnpackedFile
from buddysim.compress import ENTRY_BYTES, UNKNOWN_CLASS, entry_classes
from buddysim.importers.opencl.assumptions import DEPENDENCIES_TEXT, GAPS_TEXT
from buddysim.importers.opencl.bundle import BufferFile, Bundle, BundleBuffer, read_bundle
from buddysim.importers.opencl.decoder import PackedDecoder
from buddysim.importers.verify_output import verify_output
from buddysim.trace.format import PAGE_BYTES
from buddysim.trace.model import Provenance
from buddysim.trace.writer import TraceWriter

_READ_BYTES = 1 << 22


@dataclass
class BundleImportOptions:
    """Options of a conversion.

    Parameters
    ----------
    launches : first launch and the one after the last; None: all recorded launches
    contents_every : keep the bytes of every n-th page of 8 KiB of a snapshot; 0: none
    snapshots : launches with stored contents; None: all. Size maps always cover all bytes
    source, licence, command : for the trace's provenance
    compression_level : of the trace file
    """

    launches: tuple[int, int] | None = None
    contents_every: int = 1
    snapshots: Sequence[int] | None = None
    source: str = ""
    licence: str = ""
    command: str = ""
    compression_level: int = 19


@dataclass
class BundleImportSummary:
    """Counts of a conversion."""

    kernels: int = 0
    operations: int = 0
    lane_accesses: int = 0
    snapshots: int = 0


def convert_bundle(
    folder: str | os.PathLike[str],
    output: str | os.PathLike[str],
    options: BundleImportOptions | None = None,
    progress: Callable[[str], object] = lambda what: None,
) -> BundleImportSummary:
    """Convert a bundle's folder into a trace file.

    Parameters
    ----------
    folder : with `meta.jsonl`, `warp.trace.xz` and `snap_*` folders
    output : trace file to write
    options : launches and contents to convert
    progress : called with a description of each step
    """
    options = options or BundleImportOptions()
    bundle = read_bundle(Path(folder))
    first, end = options.launches or (min(bundle.recorded, default=0), max(bundle.recorded, default=-1) + 1)
    launches_to_convert = [launch for launch in sorted(bundle.recorded) if first <= launch < end]
    if not launches_to_convert:
        raise BuddysimError(f"{bundle.path}: no operations were recorded in launches {first} to {end - 1}")
    for launch in launches_to_convert:
        if launch not in bundle.launches:
            raise BuddysimError(f"{bundle.path / 'meta.jsonl'}: launch {launch} has an end but no beginning")
    summary = BundleImportSummary()
    with (
        Output(output, bundle.files) as whole,
        TraceWriter(whole, _provenance(bundle, options), compression_level=options.compression_level) as writer,
    ):
        indices = _Allocations(bundle, writer)
        indices.advance_to(launches_to_convert[0])
        _write_kernels(
            bundle, (launches_to_convert[0], launches_to_convert[-1] + 1), writer, indices, summary, progress
        )
        expected = sum(bundle.recorded[launch] for launch in launches_to_convert)
        if summary.operations != expected:
            raise BuddysimError(f"{bundle.trace}: {summary.operations} operations: expected {expected} by meta.jsonl")
        for launch in sorted(bundle.snapshots):
            if options.snapshots is None or launch in options.snapshots:
                progress(f"snapshot after launch {launch}")
                _write_snapshot(bundle, launch, writer, indices, options)
                summary.snapshots += 1
        writer.close()
        verify_output(bundle.path, whole.part)
    return summary


def _provenance(bundle: Bundle, options: BundleImportOptions) -> Provenance:
    return Provenance(
        tool="OpenCL capture on a CPU, converted by buddysim",
        version=buddysim.__version__,
        source=options.source or bundle.path.name,
        licence=options.licence,
        command=options.command,
        assumptions={
            "compute_gaps": GAPS_TEXT,
            "dependencies": DEPENDENCIES_TEXT,
            "contents": (
                "Snapshots are of the program's buffers. Size maps are of all bytes of a snapshot; "
                f"{_stored_pages_text(options.contents_every)}."
                if bundle.snapshots
                else "No data values were captured."
            ),
            "allocations": (
                "Allocations are the program's buffers, at buffer number x 2^48: cache-set conflicts may differ from a "
                "GPU's."
            ),
            "copies": "Memcpys are not captured: the L2 is empty before the first kernel, which is pessimistic.",
            "registers": (
                "Registers are not captured: only thread-block size limits the resident warps. Latency hiding is "
                "optimistic."
            ),
        },
    )


def _stored_pages_text(every: int) -> str:
    if every == 0:
        return "no bytes are stored"
    return "all bytes are stored" if every == 1 else f"every {every}-th page is stored"


class _Allocations:
    """Return the allocation of each buffer in the trace file."""

    def __init__(self, bundle: Bundle, writer: TraceWriter) -> None:
        self._bundle, self._writer = bundle, writer
        self._indices: dict[int, int] = {}
        self._freed: set[int] = set()

    def advance_to(self, launch: int) -> None:
        """Make the allocations and frees that happen before `launch`."""
        for number, buffer in enumerate(self._bundle.buffers):
            if (
                number in self._indices
                and number not in self._freed
                and buffer.free_launch is not None
                and buffer.free_launch <= launch
            ):
                self._writer.free_allocation(self._indices[number])
                self._freed.add(number)
        for number, buffer in enumerate(self._bundle.buffers):
            alive = buffer.alloc_launch <= launch and (buffer.free_launch is None or launch < buffer.free_launch)
            if alive and number not in self._indices:
                name = f"buffer {buffer.address >> 48}"
                self._indices[number] = self._writer.add_allocation(name, buffer.address, buffer.bytes)

    def find(self, address: int, launch: int) -> tuple[int, BundleBuffer] | None:
        """Return the allocation at `address` after `launch`, if the file has one."""
        for number, buffer in enumerate(self._bundle.buffers):
            if (
                buffer.address == address
                and buffer.alloc_launch <= launch
                and (buffer.free_launch is None or launch < buffer.free_launch)
            ):
                return (self._indices[number], buffer) if number in self._indices else None
        return None


def _write_kernels(
    bundle: Bundle,
    launches: tuple[int, int],
    writer: TraceWriter,
    allocations: _Allocations,
    summary: BundleImportSummary,
    progress: Callable[[str], object],
) -> None:
    decoder = PackedDecoder(str(bundle.trace), *launches)

    def write() -> None:
        blocks, warps, ops, lines = decoder.pop_records()
        if len(blocks):
            writer.add_blocks(blocks, warps, ops, lines)

    for data_part in _decompressed(bundle.trace):
        decoder.push(data_part)
        while decoder.step():
            if decoder.finished >= 0:
                write()
                writer.end_kernel()
            else:
                launch = bundle.launches.get(decoder.launch)
                if launch is None:
                    raise BuddysimError(f"{bundle.trace}: launch {decoder.launch} isn't in meta.jsonl")
                progress(f"launch {launch.number} ({launch.name})")
                decoder.set_kernel(launch.grid_blocks, launch.block_warps)
                allocations.advance_to(launch.number)
                writer.begin_kernel(launch.name, launch.grid, launch.block, launch_index=launch.number)
                summary.kernels += 1
        if decoder.launch >= 0:
            write()
        if decoder.passed:
            break
    else:
        decoder.finish()
        if decoder.finished >= 0:
            write()
            writer.end_kernel()
    counts = decoder.counts
    summary.operations, summary.lane_accesses = counts["operations"], counts["lanes"]


def _decompressed(path: Path) -> Iterator[bytes]:
    with UnpackedFile(open_input(path, "bundle's records"), str(path), "xz") as file:
        while data_part := file.read(_READ_BYTES):
            yield data_part


def _write_snapshot(
    bundle: Bundle, launch: int, writer: TraceWriter, allocations: _Allocations, options: BundleImportOptions
) -> None:
    snapshot = writer.add_snapshot(launch + 1, f"after launch {launch}")
    for file in bundle.snapshots[launch]:
        match = allocations.find(file.address, launch)
        if match is None:
            continue
        allocation, buffer = match
        data, pages = _read_pages(file, buffer)
        writer.add_size_map(snapshot, allocation, _classes(data, pages, buffer))
        if options.contents_every:
            stored_pages = np.flatnonzero(pages % options.contents_every == 0)
            starts = stored_pages * PAGE_BYTES
            parts = [data[start : start + PAGE_BYTES] for start in starts]
            whole = len(stored_pages) == -(-buffer.bytes // PAGE_BYTES)
            numbers = None if whole else pages[stored_pages]
            writer.add_contents(snapshot, allocation, np.concatenate(parts), numbers, PAGE_BYTES)


def _read_pages(file: BufferFile, buffer: BundleBuffer) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
    """Return the file's bytes, and the numbers of its pages; the buffer's last page can be short."""
    n_pages = -(-buffer.bytes // PAGE_BYTES)
    stored = -(-n_pages // file.every)
    expected = stored * PAGE_BYTES
    if (stored - 1) * file.every == n_pages - 1:
        expected -= n_pages * PAGE_BYTES - buffer.bytes
    with open_input(file.path, "file of a buffer's bytes") as opened:
        size = os.fstat(opened.fileno()).st_size
        if size != expected:
            raise BuddysimError(f"{file.path}: {size} bytes: expected {expected}")
        data = np.frombuffer(opened.read(expected), np.uint8)
    return data, np.arange(0, n_pages, file.every, dtype=np.uint32)


def _classes(data: npt.NDArray[np.uint8], pages: npt.NDArray[np.uint32], buffer: BundleBuffer) -> npt.NDArray[np.uint8]:
    """Return the size class of every entry of the buffer; unknown if its page is missing."""
    classes_read = entry_classes(data)
    entries = -(-buffer.bytes // ENTRY_BYTES)
    per_page = PAGE_BYTES // ENTRY_BYTES
    classes = np.full(-(-entries // per_page) * per_page, UNKNOWN_CLASS, dtype=np.uint8)
    padded = np.full(len(pages) * per_page, UNKNOWN_CLASS, dtype=np.uint8)
    padded[: len(classes_read)] = classes_read
    classes.reshape(-1, per_page)[pages] = padded.reshape(-1, per_page)
    return classes[:entries]
