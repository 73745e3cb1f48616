"""Targets chosen anew at every snapshot: what they hold, and what moving costs (Buddy Compression, Sec. 3.4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from buddysim.analyses.analysis_options import AnalysisOptions
from buddysim.analyses.analysis_result import AnalysisResult, DoesNotApply, Value
from buddysim.analyses.snapshot_classes import AllocationClasses, allocation_classes_at, snapshots_of_run
from buddysim.buddy import profile_with
from buddysim.buddy.entry_values import EntryValues
from buddysim.buddy.profile_options import ProfileOptions
from buddysim.buddy.profiler import AllocationProfile
from buddysim.buddy.targets import TARGET, Target
from buddysim.compress import ENTRY_BYTES, SECTOR_BYTES, SECTORS_OF_CLASS, STUDY_CLASSES
from buddysim.machine import Machine
from buddysim.trace import Trace

ORDER = 66
SUMMARY = "targets chosen anew at every snapshot: ratio, overflow, and bytes and time of moving entries (Sec. 3.4)"
COLUMNS = (
    "launches",
    "allocations",
    "changed_allocations",
    "ratio",
    "overflow_fraction",
    "device_bytes",
    "link_read_bytes",
    "link_write_bytes",
    "move_ms",
)
READS = ("compressors", "threshold", "machine")
NEW = TARGET["1x"]
_SECTORS = np.array(SECTORS_OF_CLASS)


def analyse(trace: Trace, options: AnalysisOptions) -> AnalysisResult:
    """A row for each snapshot: the targets of the one before, and what changing to those of its own moves."""
    values, machine, profile_options = EntryValues(trace, options.compressor), options.loaded_machine, options.profile()
    snapshots = snapshots_of_run(trace, values)
    if len(snapshots) < 2:
        raise DoesNotApply(f"{trace.path}: one snapshot: expected two or more, between which targets change")
    before: dict[int, Target] = {}
    rows: list[tuple[Value, ...]] = []
    for snapshot in snapshots:
        seen = list(allocation_classes_at(trace, values, snapshot))
        new_targets = _targets_at(trace, snapshot.index, seen, profile_options)
        changed = sum(before.get(number, NEW) != target for number, target in new_targets.items()) if before else 0
        held = _held(seen, before, profile_options)
        moved = _moved(seen, before, new_targets) if before else (0, 0, 0)
        rows.append((snapshot.launch_index, len(seen), changed, *held, *moved, _move_ms(moved, machine)))
        before = new_targets
    notes = (
        f"threshold {options.threshold:g}, sizes by {options.compressor}, of one snapshot each; a new allocation has "
        f"{NEW.name} up to the next snapshot",
        "ratio, overflow_fraction: of the snapshot's entries under the targets of the snapshot before",
        "device_bytes, link bytes: every entry of an allocation whose target changes is read and written again",
        f"move_ms: device memory and each direction of the link at the peak of {machine.name}, the longest of them; "
        "what waits for it is not simulated",
    )
    return AnalysisResult("targets chosen anew at every snapshot", COLUMNS, rows, notes)


def _targets_at(
    trace: Trace, snapshot: int, seen: list[AllocationClasses], options: ProfileOptions
) -> dict[int, Target]:
    """Choose targets by one snapshot alone."""
    observed = [
        AllocationProfile(one.index, one.name, one.bytes, one.entries, (snapshot,), counts[np.newaxis])
        for one, counts, _ in seen
    ]
    return {row.index: row.target for row in profile_with(trace, options, observed).rows}


def _held(
    seen: list[AllocationClasses], targets: Mapping[int, Target], options: ProfileOptions
) -> tuple[float | None, float | None]:
    """Return ratio and overflow fraction under the targets of the snapshot before."""
    entries = device_bytes = overflowing = 0.0
    for one, counts, _ in seen:
        target = targets.get(one.index, NEW)
        row = AllocationProfile(one.index, one.name, one.bytes, one.entries, (0,), counts[np.newaxis])
        entries += one.entries
        device_bytes += one.entries * target.device_bytes_per_entry
        overflowing += one.entries * float(row.overflow_fraction(target, eight_byte_class=options.eight_byte_class))
    return entries * ENTRY_BYTES / device_bytes if entries else None, overflowing / entries if entries else None


def _moved(
    seen: list[AllocationClasses], before: Mapping[int, Target], new_targets: Mapping[int, Target]
) -> tuple[int, int, int]:
    """Return the bytes that new targets move: in device memory, over the link to the GPU, and from it."""
    device = read = written = 0
    for one, counts, _ in seen:
        old, new = before.get(one.index, NEW), new_targets[one.index]
        if old != new:
            old_device, old_buddy = _stored(counts, one.entries, old)
            new_device, new_buddy = _stored(counts, one.entries, new)
            device += old_device + new_device
            read += old_buddy
            written += new_buddy
    return device, read, written


def _move_ms(moved: tuple[int, int, int], machine: Machine) -> float:
    link = machine.link
    rates = (machine.dram_bytes_per_s, machine.bytes_per_s(link.bandwidth), machine.bytes_per_s(link.from_gpu))
    return 1e3 * max(amount / rate for amount, rate in zip(moved, rates, strict=True))


def _stored(counts: NDArray[np.int64], entries: int, target: Target) -> tuple[int, int]:
    """Return the bytes of an allocation's entries in device and in buddy memory, in whole sectors.

    An entry of more than 8 B with a target of 16x has its data in buddy memory.
    """
    if target.device_sectors:
        device = np.minimum(_SECTORS, target.device_sectors)
        buddy = _SECTORS - device
    else:
        device = np.minimum(_SECTORS, 1)
        buddy = np.where(np.array(STUDY_CLASSES) > target.device_bytes_per_entry, _SECTORS, 0)
    scale = SECTOR_BYTES * entries / int(counts.sum())
    return round(int(counts @ device) * scale), round(int(counts @ buddy) * scale)
