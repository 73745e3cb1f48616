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
from buddysim.replay.schemes import own_footprint
from buddysim.replay.schemes.base import SchemeBase
from buddysim.trace import Kernel, KernelLaunch, Trace

DEVICE_MEMORY = "device memory"


def memory_of_kinds() -> dict[str, str]:
    """Kinds of bytes that entries of device allocations take, schemes' included, and the memory in which each lies."""
    return {"device": DEVICE_MEMORY, **own_footprint()}


@dataclass(frozen=True)
class MemoryFootprint:
    """Bytes of each kind after every allocation event of a run (docs/reference/replay-rules.md, Capacity).

    Attributes
    ----------
    positions : int64 (instants,), event indexes of the trace, rising
    bytes : int64 (instants,) of each kind, from each event to the next: `allocated`, of the program's device
        allocations; what their entries take (`memory_of_kinds`); `host`, allocated in host memory
    """

    positions: NDArray[np.int64]
    bytes: dict[str, NDArray[np.int64]]

    def in_memory(self, memory: str) -> NDArray[np.int64]:
        """Return the bytes of all kinds that lie in a memory."""
        kinds = [kind for kind, where in memory_of_kinds().items() if where == memory]
        total: NDArray[np.int64] = np.sum([self.bytes[kind] for kind in kinds], axis=0, dtype=np.int64)
        return total

    def largest_device_bytes(self) -> int:
        """Return the peak of what lies in device memory."""
        return int(self.in_memory(DEVICE_MEMORY).max())

    def largest(self) -> dict[str, int]:
        """Return the peak of each kind; of those in device memory, their values at the peak of their sum."""
        fullest = int(np.argmax(self.in_memory(DEVICE_MEMORY)))
        memory = memory_of_kinds()
        return {
            kind: int(column[fullest] if memory.get(kind) == DEVICE_MEMORY else column.max())
            for kind, column in self.bytes.items()
        }

    def mean(self, launches: Sequence[tuple[int, int]], end_ps: int) -> dict[str, int]:
        """Return the mean of each kind over simulated time, rounded down; 0 if no time passed.

        Parameters
        ----------
        launches : event index and time (ps) of each launch of the run, in order
        end_ps : end of the run
        """
        return {kind: bytes_ps // max(1, end_ps) for kind, bytes_ps in self._over_time(launches, end_ps).items()}

    def ratio(self) -> float:
        """Return the compression ratio: peak bytes allocated / peak device bytes occupied, without metadata."""
        return _ratio(int(self.bytes["allocated"].max()), int(self.bytes["device"].max()))

    def max_ratio(self) -> float:
        """Return the largest ratio at any event."""
        pairs = zip(self.bytes["allocated"].tolist(), self.bytes["device"].tolist(), strict=True)
        return max(_ratio(allocated, device) for allocated, device in pairs)

    def mean_ratio(self, launches: Sequence[tuple[int, int]], end_ps: int) -> float:
        """Return the mean of the bytes allocated / the mean of the device memory occupied; parameters of `mean`."""
        total = self._over_time(launches, end_ps)
        return _ratio(total["allocated"], total["device"])

    def _over_time(self, launches: Sequence[tuple[int, int]], end_ps: int) -> dict[str, int]:
        """Return bytes times ps of each kind.

        From one launch to the next, the allocations live at the first count; before the first launch, those at it.
        """
        total = dict.fromkeys(self.bytes, 0)
        ends = [time_ps for _, time_ps in launches[1:]] + [end_ps]
        begins = [0] + [time_ps for _, time_ps in launches[1:]]
        for (position, _), time_ps, next_ps in zip(launches, begins, ends, strict=False):
            row = int(np.searchsorted(self.positions, position, side="right")) - 1
            for kind, column in self.bytes.items():
                total[kind] += int(column[row]) * (next_ps - time_ps)
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
    taken = list(memory_of_kinds())
    of_target = {target: _fractions(scheme.entry_bytes(machine, target), taken) for target in ALL_TARGETS if targets}
    amounts = np.zeros((len(trace.allocations), 2 + len(taken)), dtype=np.int64)
    for row, allocation in zip(amounts, trace.allocations, strict=True):
        entries = allocation.entries
        if allocation.space == "host" or scheme.allocations_in_host_memory:
            row[-1] = entries * ENTRY_BYTES
            continue
        row[:2] = entries * ENTRY_BYTES
        if targets:
            n, d = of_target[targets.of(allocation.index)]
            row[1:-1] = -(-entries * n // d)
    positions, totals = sums_over_time(trace.allocations, amounts, *_span(trace, kernels))
    return MemoryFootprint(positions, dict(zip(["allocated", *taken, "host"], totals.T, strict=True)))


def _fractions(entry_bytes: dict[str, Fraction], kinds: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return numerators and denominators of the bytes of each kind that an entry takes."""
    pairs = [entry_bytes.get(kind, Fraction(0)).as_integer_ratio() for kind in kinds]
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
    """Raise a BuddysimError, with amount and event, if device memory or a memory of the scheme's is ever too small.

    Parameters
    ----------
    footprint : the footprint of the run
    machine : the machine with its capacities
    trace : the trace, for messages
    scheme : has targets or not, and the capacities of memories of its own
    """
    what = "the targets need" if scheme.uses_targets else "uncompressed allocations need"
    for where, available in {DEVICE_MEMORY: machine.dram.capacity, **scheme.capacities(machine)}.items():
        needed = footprint.in_memory(where)
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
