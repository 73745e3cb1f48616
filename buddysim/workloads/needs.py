"""Estimates of the memory, disk space and time that the trace of a workload needs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.host_memory import memory_available
from buddysim.compress import ENTRY_BYTES
from buddysim.machine.units import format_size
from buddysim.trace.format import PAGE_BYTES
from buddysim.workloads.solver import Solver

# Measured over the workloads at medium; the figures of a run are printed at its end.
_BYTES_PER_OPERATION = 24  # in the file, of random addresses
_OPERATIONS_PER_SECOND = 250_000  # of the capture, on one core: 32 lanes each
_SNAPSHOT_SECONDS_PER_BYTE = 2.1e-9
_MAP_ENTRIES_PER_BYTE = 2  # in the file, before zstd
_PROGRAM_BYTES = 400 << 20  # two Python processes, PoCL and its compiler
_HEADROOM = 1.25


@dataclass(frozen=True)
class Needs:
    """Estimated needs of a run.

    Attributes
    ----------
    memory_bytes : of the program, its arrays and the capture
    disk_bytes : of the file
    seconds : processor time
    """

    memory_bytes: int
    disk_bytes: int
    seconds: float

    def __str__(self) -> str:
        time = "a few minutes"  # what is not estimated, as compilation and verification, takes longer
        if self.seconds >= 300:
            time = f"{self.seconds / 3600:.1f} hours" if self.seconds > 3600 else f"{self.seconds / 60:.1f} minutes"
        return (
            f"needs about {_size(self.memory_bytes)} of memory, up to {_size(self.disk_bytes)} of disk and "
            f"{time} of processor time"
        )


def needs_of_run(solver: Solver, contents_every: int) -> Needs:
    """Return the estimated needs of a solver's run."""
    first, end = solver.window
    maps = end - first + 1 + len(solver.snapshot_points)
    map_bytes = maps * solver.device_bytes // (ENTRY_BYTES * _MAP_ENTRIES_PER_BYTE)
    snapshot_bytes = solver.device_bytes * len(solver.snapshot_points) // contents_every if contents_every else 0
    seconds = (
        solver.native_seconds
        + solver.traced_operations / _OPERATIONS_PER_SECOND
        + maps * solver.device_bytes * _SNAPSHOT_SECONDS_PER_BYTE
    )
    return Needs(
        memory_bytes=int(_HEADROOM * (solver.device_bytes + solver.host_bytes + map_bytes + snapshot_bytes))
        + _PROGRAM_BYTES,
        disk_bytes=solver.traced_operations * _BYTES_PER_OPERATION + map_bytes + snapshot_bytes + PAGE_BYTES,
        seconds=seconds,
    )


def check_free_resources(what: str, needs: Needs, folder: Path) -> None:
    """Refuse a run for which memory or disk space is too small.

    Raises
    ------
    BuddysimError
            too little disk space in the folder, or too little memory; the message has both figures
    """
    free = shutil.disk_usage(folder).free
    if free < needs.disk_bytes:
        raise BuddysimError(f"{what} needs up to {_size(needs.disk_bytes)} of disk, {folder} has {_size(free)} free")
    available = memory_available()
    if available < needs.memory_bytes:
        raise BuddysimError(
            f"{what} needs about {_size(needs.memory_bytes)} of memory, {_size(available)} are available"
        )


def _size(size_bytes: int) -> str:
    """Format a size in whole MiB, the precision of the estimates."""
    return format_size((size_bytes + (1 << 20) - 1) >> 20 << 20)
