"""What a run's allocations occupy over time, and whether the machine has room for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.buddy import Targets
from buddysim.buddy.over_time import sums_over_time
from buddysim.compress import ENTRY_BYTES
from buddysim.machine import Machine
from buddysim.trace import Kernel, KernelLaunch, Trace

METADATA_ENTRIES_PER_BYTE = 2

#: What is counted, in bytes. Of the allocations that the program keeps in device memory: what it allocated, what they
#: occupy there under the targets, what of the carve-out, and their entries' metadata in device memory (4 bits each:
#: Buddy Compression, section 3.2). And what is allocated in host memory.
KINDS = ("allocated", "device", "buddy", "metadata", "host")
_ALLOCATED, _DEVICE, _BUDDY, _METADATA, _HOST = range(len(KINDS))


@dataclass(frozen=True)
class MemoryFootprint:
    """Bytes by where they lie, at every moment of a run (docs/model-rules.md, Capacity).

    Attributes
    ----------
    positions : int64 (moments,), among the trace's events, rising
    bytes : int64 (moments, 5), by `KINDS`, from each moment to the next
    """

    positions: NDArray[np.int64]
    bytes: NDArray[np.int64]

    def largest(self) -> dict[str, int]:
        """The largest of each kind; of data and metadata in device memory those at the moment of their largest sum."""
        most = dict(zip(KINDS, map(int, self.bytes.max(axis=0)), strict=True))
        moment = self.bytes[int(np.argmax(self.bytes[:, _DEVICE] + self.bytes[:, _METADATA]))]
        return {**most, "device": int(moment[_DEVICE]), "metadata": int(moment[_METADATA])}

    def mean(self, launches: Sequence[tuple[int, int]], end_ps: int) -> dict[str, int]:
        """The mean of each kind over simulated time, rounded down; 0 where no time passed.

        Parameters
        ----------
        launches : position and time (ps) of each launch of the run, in order
        end_ps : when the run ended
        """
        total = self._over_time(launches, end_ps)
        return {kind: bytes_ps // end_ps if end_ps else 0 for kind, bytes_ps in zip(KINDS, total, strict=True)}

    def ratio(self) -> float:
        """Effective compression ratio: the most bytes allocated / the most bytes of device memory that they occupy."""
        return _ratio(*map(int, self.bytes[:, [_ALLOCATED, _DEVICE]].max(axis=0)))

    def max_ratio(self) -> float:
        """The largest ratio at any moment."""
        return max(_ratio(int(row[_ALLOCATED]), int(row[_DEVICE])) for row in self.bytes)

    def mean_ratio(self, launches: Sequence[tuple[int, int]], end_ps: int) -> float:
        """The mean of the bytes allocated over that of the bytes of device memory; parameters as for `mean`."""
        total = self._over_time(launches, end_ps)
        return _ratio(total[_ALLOCATED], total[_DEVICE])

    def _over_time(self, launches: Sequence[tuple[int, int]], end_ps: int) -> list[int]:
        """Bytes times ps of each kind: from one launch to the next, what is live at the first counts."""
        total = [0] * len(KINDS)
        ends = [time_ps for _, time_ps in launches[1:]] + [end_ps]
        for (position, time_ps), next_ps in zip(launches, ends, strict=False):
            row = self.bytes[int(np.searchsorted(self.positions, position, side="right")) - 1]
            total = [so_far + int(here) * (next_ps - time_ps) for so_far, here in zip(total, row, strict=True)]
        return total


def footprint_of(
    trace: Trace, kernels: Sequence[Kernel], targets: Targets | None, machine: Machine, all_on_host: bool
) -> MemoryFootprint:
    """The footprint of a run.

    Parameters
    ----------
    trace : whose allocations
    kernels : those that run
    targets : the allocations' target ratios; None where nothing is compressed for capacity
    machine : whether 1x allocations have metadata
    all_on_host : every allocation is pinned in host memory
    """
    amounts = np.zeros((len(trace.allocations), len(KINDS)), dtype=np.int64)
    for row, allocation in zip(amounts, trace.allocations, strict=True):
        entries = allocation.entries
        if allocation.space == "host" or all_on_host:
            row[_HOST] = entries * ENTRY_BYTES
            continue
        target = targets.of(allocation.index) if targets else None
        kept = target.device_bytes_per_entry if target else ENTRY_BYTES
        row[_ALLOCATED] = entries * ENTRY_BYTES
        row[_DEVICE], row[_BUDDY] = entries * kept, entries * (ENTRY_BYTES - kept)
        if target and not (kept == ENTRY_BYTES and machine.buddy.bypass_1x):
            row[_METADATA] = -(-entries // METADATA_ENTRIES_PER_BYTE)
    return MemoryFootprint(*sums_over_time(trace.allocations, amounts, *_span(trace, kernels)))


def _span(trace: Trace, kernels: Sequence[Kernel]) -> tuple[int, int]:
    """The positions with which a run begins and ends; the trace's where no kernel is left out before or behind."""
    launches = _launches(trace)
    chosen = {kernel.index for kernel in kernels}
    runs = [number for number, (_, kernel) in enumerate(launches) if kernel in chosen]
    if not runs:
        return 0, len(trace.events)
    first = 0 if runs[0] == 0 else launches[runs[0]][0]
    return first, len(trace.events) if runs[-1] == len(launches) - 1 else launches[runs[-1]][0]


def _launches(trace: Trace) -> list[tuple[int, int]]:
    """Position and kernel of every launch."""
    return [(position, event.kernel) for position, event in enumerate(trace.events) if isinstance(event, KernelLaunch)]


def check_capacity(footprint: MemoryFootprint, machine: Machine, trace: Trace, compressed: bool) -> None:
    """Raises BuddysimError, by how much and when, where device memory or the carve-out is too small at a moment.

    Parameters
    ----------
    footprint : of the run
    machine : its capacities
    trace : for where the moment is
    compressed : with targets; else entries take their whole size
    """
    capacity = machine.dram.capacity
    what = "the targets need" if compressed else "uncompressed allocations need"
    for where, needed, available in (
        ("device memory", footprint.bytes[:, _DEVICE] + footprint.bytes[:, _METADATA], capacity),
        ("carve-out", footprint.bytes[:, _BUDDY], machine.buddy.carve_out_ratio * capacity),
    ):
        moment = int(np.argmax(needed))
        most = int(needed[moment])
        if most > available:
            raise BuddysimError(
                f"{trace.path}: {where} of {machine.name}: {what} {most} B "
                f"{_when(trace, int(footprint.positions[moment]))}, there are {available} B: "
                f"{most - available} B too much"
            )


def _when(trace: Trace, position: int) -> str:
    for at, kernel in _launches(trace):
        if at >= position:
            return f"at event {position}, before kernel {kernel} ({trace.kernels[kernel].name})"
    return f"at event {position}, after the last kernel"


def _ratio(allocated: int, device: int) -> float:
    return allocated / device if device else 1.0
