"""The measured kernels: counters of a Quadro GV100, launch shapes, and Accel-Sim's cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.schema import Schema, checked_cells
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
Number = Annotated[float, Field(ge=0, lt=2**63)]
#: No kernel takes no time: correlations are of logarithms.
Cycles = Annotated[float, Field(gt=0, lt=2**63)]


class MeasuredFields(Schema):
    """The cells of a measured kernel, by their columns; others are passed over."""

    model_config = ConfigDict(extra="ignore")

    program: str
    kernel: str
    cycles: Cycles
    warp_instructions: Number
    global_read_requests: Number
    global_write_requests: Number
    global_read_sectors: Number
    global_write_sectors: Number
    l2_read_sectors: Number
    l2_write_sectors: Number
    l2_hit_percent: Number
    dram_sectors: Number
    accelsim_cycles: Cycles

    @property
    def counters(self) -> KernelCounters:
        """The counters, under the names of a replay."""
        return KernelCounters(
            self.cycles, self.warp_instructions, self.global_read_requests, self.global_write_requests,
            self.global_read_sectors, self.global_write_sectors, self.l2_read_sectors, self.l2_write_sectors,
            self.l2_hit_percent / 100, self.dram_sectors,
        )  # fmt: skip


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


@within_budget
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
    for line, cells in parse_table(text, where, MeasuredFields):
        row = checked_cells(MeasuredFields, cells, line)
        kernels = by_program.setdefault(row.program, [])
        shape = shapes.get((row.program, len(kernels)), ("", ""))
        kernels.append(MeasuredKernel(row.program, len(kernels), *shape, row.counters, row.accelsim_cycles))
    return by_program


def _shapes() -> Mapping[tuple[str, int], tuple[str, str]]:
    text = (_DATA / "gv100_launches.csv").read_text(encoding="utf-8")
    rows = [checked_cells(_Launch, row, where) for where, row in parse_table(text, "gv100_launches.csv", _Launch)]
    return {(row.program, row.kernel): (row.grid, row.block) for row in rows}


class _Launch(Schema):
    model_config = ConfigDict(extra="ignore")

    program: str
    kernel: int
    grid: str
    block: str


def parse_table(text: str, where: str, schema: type[Schema]) -> list[tuple[str, dict[str, str]]]:
    """Return the rows of a CSV table by column, each with its file and line.

    Raises
    ------
    BuddysimError
        where a column of the schema is missing, or a row is short
    """
    rows = csv_rows(text, where)
    head = next(rows, (0, []))[1]
    missing = [column for column in schema.model_fields if column not in head]
    if missing:
        raise BuddysimError(f"{where}: not a table of kernels: there is no column {missing[0]}")
    table_rows = []
    for line, cells in rows:
        if len(cells) != len(head):
            raise BuddysimError(f"{where}: line {line}: {len(cells)} columns, expected {len(head)}")
        table_rows.append((f"{where}: line {line}", dict(zip(head, cells, strict=True))))
    return table_rows
