"""Captured programs replayed kernel by kernel, each from cold caches, and the stored results of earlier replays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import ConfigDict, Field

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.schema import Schema, checked_cells
from buddysim.base.textfile import read_text
from buddysim.machine import Machine
from buddysim.replay.simulation import simulate
from buddysim.replay.version import MODEL_VERSION
from buddysim.trace import OP_ATOMIC, OP_LOAD, OP_STORE, Kernel, Trace, open_trace
from buddysim.validation.comparison import Value
from buddysim.validation.kernel.counter_data import COUNTERS, LARGEST_FILE, Cycles, KernelCounters, Number, parse_table

_STORED = resources.files("buddysim.validation") / "data" / "gv100_replays.csv"
_SECTOR_BYTES = 32


class ReplayFields(Schema):
    """The cells of a replay, by their columns; others are passed over."""

    model_config = ConfigDict(extra="ignore")

    program: str
    kernel: Annotated[int, Field(ge=0, lt=2**63)]
    name: str
    grid: str
    block: str
    cycles: Cycles
    warp_instructions: Number
    read_requests: Number
    write_requests: Number
    read_sectors: Number
    write_sectors: Number
    l2_read_sectors: Number
    l2_write_sectors: Number
    l2_hit_fraction: Number
    dram_sectors: Number
    machine_digest: str
    model_version: str


COLUMNS = tuple(ReplayFields.model_fields)


@dataclass(frozen=True)
class KernelReplay:
    """A kernel's replay.

    Attributes
    ----------
    program, number : its program, and index among the program's kernels
    name : of the kernel's function
    grid, block : launch shape, ``16x64``
    counters : of the replay
    made_with : start of the machine's checksum, and version of the model
    """

    program: str
    number: int
    name: str
    grid: str
    block: str
    counters: KernelCounters
    made_with: tuple[str, str]

    @property
    def row(self) -> tuple[Value, ...]:
        """A value for each of `COLUMNS`."""
        counts = (float(f"{value:.6g}") if value % 1 else int(value) for value in astuple(self.counters))
        return (self.program, self.number, self.name, self.grid, self.block, *counts, *self.made_with)


def made_with(machine: Machine) -> tuple[str, str]:
    """Return what a replay's result depends on but for the trace: the machine's checksum, the model's version."""
    return machine.checksum[:12], str(MODEL_VERSION)


def replay_captures(
    folder: Path, programs: dict[str, int], machine: Machine, progress: Callable[[str], None]
) -> Iterator[KernelReplay]:
    """Replay the captures of a folder, ``PROGRAM.bin`` each.

    Parameters
    ----------
    folder : of the captures; programs without one are left out
    programs : the most kernels of each program to replay
    machine : the machine
    progress : called with a line about each program

    Raises
    ------
    BuddysimError
        where the folder has no capture of any of the programs
    """
    captures = {name: folder / f"{name}.bin" for name in programs if (folder / f"{name}.bin").is_file()}
    if not captures:
        raise BuddysimError(f"{folder}: no captures: expected files such as {next(iter(programs))}.bin")
    cold = machine.with_overrides({"l2.fill_on_memcpy": False})
    for name, path in captures.items():
        with open_trace(path) as trace:
            kernels = trace.kernels[: programs[name]]
            for kernel in kernels:
                yield replay_kernel(name, trace, kernel, cold, made_with(machine))
        progress(f"{name}: {len(kernels)} kernels replayed")


def replay_kernel(
    program: str, trace: Trace, kernel: Kernel, machine: Machine, version: tuple[str, str]
) -> KernelReplay:
    """Replay one kernel alone, from cold caches."""
    result = simulate(trace, machine, "ideal", kernels=range(kernel.index, kernel.index + 1)).counters
    loads, stores = count_requests(trace, kernel)
    requested = result["l2.read_sectors"] + result["l2.write_sectors"]
    missed = result["l2.read_sector_misses"]
    counters = KernelCounters(
        cycles=result["cycles"],
        warp_instructions=result["warp_instructions"],
        read_requests=loads,
        write_requests=stores,
        read_sectors=result["load_sectors"],
        write_sectors=result["store_sectors"],
        l2_read_sectors=result["l2.read_sectors"],
        l2_write_sectors=result["l2.write_sectors"],
        l2_hit_fraction=1 - missed / requested if requested else 0.0,
        dram_sectors=(result["device.read_bytes"] + result["device.write_bytes"]) / _SECTOR_BYTES,
    )
    grid, block = format_shape(kernel.grid), format_shape(kernel.block)
    return KernelReplay(program, kernel.index, kernel.name, grid, block, counters, version)


def count_requests(trace: Trace, kernel: Kernel) -> tuple[int, int]:
    """Count the warp instructions of a kernel that read global memory, and those that write it."""
    kinds = np.zeros(4, dtype=np.int64)
    for ref in kernel.chunks:
        kinds += np.bincount(trace.decode_chunk(ref).ops["kind"], minlength=4)
    return int(kinds[OP_LOAD] + kinds[OP_ATOMIC]), int(kinds[OP_STORE])


def format_shape(dimensions: tuple[int, int, int]) -> str:
    """Format a grid or block as ``16x64``; a third dimension of 1 is left out."""
    x, y, z = dimensions
    return f"{x}x{y}" if z == 1 else f"{x}x{y}x{z}"


def load_stored_replays() -> list[KernelReplay]:
    """Return the bundled results of replays: the captures are too large to be bundled."""
    return parse_replays(_STORED.read_text(encoding="utf-8"), "gv100_replays.csv")


@within_budget
def load_replays(path: Path) -> list[KernelReplay]:
    """Return the results of replays in a file: a table of points that an earlier comparison wrote."""
    return parse_replays(read_text(path, "table of replays", LARGEST_FILE), str(path))


def parse_replays(text: str, where: str) -> list[KernelReplay]:
    """Parse replays from a table with the columns of `ReplayFields`."""
    rows = [checked_cells(ReplayFields, row, line) for line, row in parse_table(text, where, ReplayFields)]
    return [
        KernelReplay(
            row.program,
            row.kernel,
            row.name,
            row.grid,
            row.block,
            KernelCounters(**{name: getattr(row, name) for name in COUNTERS}),
            (row.machine_digest, row.model_version),
        )
        for row in rows
    ]
