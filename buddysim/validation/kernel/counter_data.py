"""The measured kernels: counters of a Quadro GV100, launch shapes, and Accel-Sim's cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.textfile import csv_rows, read_text

_DATA = resources.files("buddysim.validation") / "data"
LARGEST_FILE = 2**24
FITTED = ("gemm", "2DConvolution", "hotspot", "backprop", "bfs")
TESTED = ("3mm", "atax", "mvt", "b+tree", "pathfinder", "lud", "nw")
PROGRAMS = FITTED + TESTED


@dataclass(frozen=True)
class KernelCounters:
    """Counters of a kernel, on a GPU or in a replay; sectors are of 32 B.

    Attributes
    ----------
    l2_hit_fraction : hits as a fraction of the sectors requested from the L2
    dram_sectors : sectors read and written
    """

    cycles: float
    warp_instructions: float
    read_requests: float
    write_requests: float
    read_sectors: float
    write_sectors: float
    l2_read_sectors: float
    l2_write_sectors: float
    l2_hit_fraction: float
    dram_sectors: float

    @property
    def l1_hit_fraction(self) -> float:
        """Fraction of the global read sectors that hit in the L1."""
        return 1 - self.l2_read_sectors / self.read_sectors if self.read_sectors else 0.0

    @property
    def l2_sectors(self) -> float:
        return self.l2_read_sectors + self.l2_write_sectors


COUNTERS = tuple(field.name for field in fields(KernelCounters))
_NAMES = {
    "cycles": "cycles",
    "warp_instructions": "warp_instructions",
    "read_requests": "global_read_requests",
    "write_requests": "global_write_requests",
    "read_sectors": "global_read_sectors",
    "write_sectors": "global_write_sectors",
    "l2_read_sectors": "l2_read_sectors",
    "l2_write_sectors": "l2_write_sectors",
    "l2_hit_fraction": "l2_hit_percent",
    "dram_sectors": "dram_sectors",
}


@dataclass(frozen=True)
class MeasuredKernel:
    """A measured kernel.

    Attributes
    ----------
    program, number : its program, and index among the program's kernels
    grid, block : launch shape, ``16x64``; empty where unknown
    counters : from Nsight Compute
    accelsim_cycles : cycles that Accel-Sim simulated
    """

    program: str
    number: int
    grid: str
    block: str
    counters: KernelCounters
    accelsim_cycles: float


def load_measured_kernels(path: Path | None = None) -> dict[str, list[MeasuredKernel]]:
    """Return the kernels of each program in launch order, from a file or from the bundled one.

    Raises
    ------
    BuddysimError
        where the file is no table of kernels
    """
    if path is None:
        text, where = (_DATA / "gv100_kernels.csv").read_text(encoding="utf-8"), "gv100_kernels.csv"
    else:
        text, where = read_text(path, "table of measured kernels", LARGEST_FILE), str(path)
    shapes = _shapes()
    by_program: dict[str, list[MeasuredKernel]] = {}
    for line, row in parse_table(text, where, ("program", "kernel", *_NAMES.values(), "accelsim_cycles")):
        values = {name: parse_number(row[column], f"{where}: line {line}: {column}") for name, column in _NAMES.items()}
        values["l2_hit_fraction"] /= 100
        kernels = by_program.setdefault(row["program"], [])
        kernels.append(
            MeasuredKernel(
                row["program"],
                len(kernels),
                *shapes.get((row["program"], len(kernels)), ("", "")),
                KernelCounters(**values),
                parse_number(row["accelsim_cycles"], f"{where}: line {line}: accelsim_cycles"),
            )
        )
    return by_program


def _shapes() -> Mapping[tuple[str, int], tuple[str, str]]:
    text = (_DATA / "gv100_launches.csv").read_text(encoding="utf-8")
    rows = parse_table(text, "gv100_launches.csv", ("program", "kernel", "grid", "block"))
    return {(row["program"], int(row["kernel"])): (row["grid"], row["block"]) for _, row in rows}


def parse_table(text: str, where: str, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a CSV table by column, each with its line number.

    Raises
    ------
    BuddysimError
        where a column is missing, or a row is short
    """
    rows = csv_rows(text, where)
    head = next(rows, (0, []))[1]
    missing = [column for column in columns if column not in head]
    if missing:
        raise BuddysimError(f"{where}: not a table of kernels: there is no column {missing[0]}")
    table_rows = []
    for line, cells in rows:
        if len(cells) != len(head):
            raise BuddysimError(f"{where}: line {line}: {len(cells)} columns, expected {len(head)}")
        table_rows.append((line, dict(zip(head, cells, strict=True))))
    return table_rows


def parse_number(text: str, where: str) -> float:
    """Parse a number, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 2**63:
        raise BuddysimError(f"{where}: {shortened(text)}: expected a number from 0")
    return value
