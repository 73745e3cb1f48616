"""Memory that a run's allocations occupy over time, and the check against the machine's capacities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.buddy import ALL_TARGETS, Targets
from buddysim.buddy.over_time import sums_over_time
from buddysim.compress import ENTRY_BYTES
from buddysim.machine import Machine
from buddysim.replay.engine.scheme import SchemeBase
from buddysim.trace import Kernel, KernelLaunch, Trace

#: Kinds of bytes. Of the program's device allocations: bytes allocated, bytes of device memory that they occupy under
#: the targets, bytes of the carve-out, and bytes of their entries' metadata in device memory. And bytes allocated in
#: host memory.
KINDS = ("allocated", "device", "buddy", "metadata", "host")
_ALLOCATED, _DEVICE, _BUDDY, _METADATA, _HOST = range(len(KINDS))


@dataclass(frozen=True)
class MemoryFootprint:
    """Bytes of each kind after every allocation event of a run (docs/reference/replay-rules.md, Capacity).

    Attributes
    ----------
    positions : int64 (instants,), event indexes of the trace, rising
    bytes : int64 (instants, 5), by `KINDS`, from each event to the next
    """

    positions: NDArray[np.int64]
    bytes: NDArray[np.int64]

    def largest(self) -> dict[str, int]:
        """Return the peak of each kind; for device data and metadata, their values at the peak of their sum."""
        peak = dict(zip(KINDS, map(int, self.bytes.max(axis=0)), strict=True))
        fullest = self.bytes[int(np.argmax(self.bytes[:, _DEVICE] + self.bytes[:, _METADATA]))]
        return {**peak, "device": int(fullest[_DEVICE]), "metadata": int(fullest[_METADATA])}

    def mean(self, launches: Sequence[tuple[int, int]], end_ps: int) -> dict[str, int]:
        """Return the mean of each kind over simulated time, rounded down; 0 if no time passed.

        Parameters
        ----------
        launches : event index and time (ps) of each launch of the run, in order
        end_ps : end of the run
        """
        total = self._over_time(launches, end_ps)
        return {kind: bytes_ps // end_ps if end_ps else 0 for kind, bytes_ps in zip(KINDS, total, strict=True)}

    def ratio(self) -> float:
        """Return the compression ratio: peak bytes allocated / peak device bytes occupied, without metadata."""
        return _ratio(*map(int, self.bytes[:, [_ALLOCATED, _DEVICE]].max(axis=0)))

    def max_ratio(self) -> float:
        """Return the largest ratio at any event."""
        return max(_ratio(int(row[_ALLOCATED]), int(row[_DEVICE])) for row in self.bytes)

    def mean_ratio(self, launches: Sequence[tuple[int, int]], end_ps: int) -> float:
        """Return the mean of the bytes allocated / the mean of the device memory occupied; parameters of `mean`."""
        total = self._over_time(launches, end_ps)
        return _ratio(total[_ALLOCATED], total[_DEVICE])

    def _over_time(self, launches: Sequence[tuple[int, int]], end_ps: int) -> list[int]:
        """Return bytes times ps of each kind; from one launch to the next, the allocations live at the first count."""
        total = [0] * len(KINDS)
        ends = [time_ps for _, time_ps in launches[1:]] + [end_ps]
        for (position, time_ps), next_ps in zip(launches, ends, strict=False):
            row = self.bytes[int(np.searchsorted(self.positions, position, side="right")) - 1]
            total = [so_far + int(here) * (next_ps - time_ps) for so_far, here in zip(total, row, strict=True)]
        return total


def footprint_of(
    trace: Trace, kernels: Sequence[Kernel], targets: Targets | None, machine: Machine, scheme: type[SchemeBase]
) -> MemoryFootprint:
    """Return the footprint of a run.

    Parameters
    ----------
    trace : the trace
    kernels : the kernels that run
    targets : the allocations' target ratios; None if nothing is compressed for capacity
    machine : the machine
    scheme : says what an allocation occupies under its target, and whether all lie in host memory
    """
    of_target = {target: _fractions(scheme.entry_bytes(machine, target)) for target in ALL_TARGETS if targets}
    amounts = np.zeros((len(trace.allocations), len(KINDS)), dtype=np.int64)
    for row, allocation in zip(amounts, trace.allocations, strict=True):
        entries = allocation.entries
        if allocation.space == "host" or scheme.allocations_in_host_memory:
            row[_HOST] = entries * ENTRY_BYTES
            continue
        row[_ALLOCATED] = row[_DEVICE] = entries * ENTRY_BYTES
        if targets:
            n, d = of_target[targets.of(allocation.index)]
            row[_DEVICE:_HOST] = -(-entries * n // d)
    return MemoryFootprint(*sums_over_time(trace.allocations, amounts, *_span(trace, kernels)))


def _fractions(entry_bytes: dict[str, Fraction]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return numerators and denominators of the bytes that an entry takes, of device memory to metadata."""
    pairs = [entry_bytes[kind].as_integer_ratio() for kind in KINDS[_DEVICE:_HOST]]
    numerators, denominators = np.array(pairs, dtype=np.int64).T
    return numerators, denominators


def _span(trace: Trace, kernels: Sequence[Kernel]) -> tuple[int, int]:
    """Return the first and last event index of a run: those of the trace if no kernel is left out at that end."""
    launches = _launches(trace)
    selected = {kernel.index for kernel in kernels}
    runs = [number for number, (_, kernel) in enumerate(launches) if kernel in selected]
    if not runs:
        return 0, len(trace.events)
    first = 0 if runs[0] == 0 else launches[runs[0]][0]
    return first, len(trace.events) if runs[-1] == len(launches) - 1 else launches[runs[-1]][0]


def _launches(trace: Trace) -> list[tuple[int, int]]:
    """Return event index and kernel of every launch."""
    return [(position, event.kernel) for position, event in enumerate(trace.events) if isinstance(event, KernelLaunch)]


def check_capacity(footprint: MemoryFootprint, machine: Machine, trace: Trace, scheme: type[SchemeBase]) -> None:
    """Raise a BuddysimError, with amount and event, if device memory or the carve-out is ever too small.

    Parameters
    ----------
    footprint : the footprint of the run
    machine : the machine with its capacities
    trace : the trace, for messages
    scheme : has targets or not, and the size of the carve-out
    """
    capacity = machine.dram.capacity
    what = "the targets need" if scheme.uses_targets else "uncompressed allocations need"
    for where, needed, available in (
        ("device memory", footprint.bytes[:, _DEVICE] + footprint.bytes[:, _METADATA], capacity),
        ("carve-out", footprint.bytes[:, _BUDDY], scheme.carve_out_bytes(machine)),
    ):
        at_peak = int(np.argmax(needed))
        peak = int(needed[at_peak])
        if peak > available:
            raise BuddysimError(
                f"{trace.path}: {where} of {machine.name}: {what} {peak} B "
                f"{_format_event(trace, int(footprint.positions[at_peak]))}, there are {available} B: "
                f"{peak - available} B too much"
            )


def _format_event(trace: Trace, position: int) -> str:
    for at, kernel in _launches(trace):
        if at >= position:
            return f"at event {position}, before kernel {kernel} ({trace.kernels[kernel].name})"
    return f"at event {position}, after the last kernel"


def _ratio(allocated: int, device: int) -> float:
    return allocated / device if device else 1.0
