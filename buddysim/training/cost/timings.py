"""Measured layer times: CSV files, the input of calibration and validation.

Lines that begin with ``#`` are comments (source, licence); then a header, then one measurement per row. Columns may
come in any order; `ms` is the time of one pass in milliseconds.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from pydantic import Field

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.schema import Filled, Schema, checked_cells
from buddysim.base.textfile import csv_rows, read_text
from buddysim.training.cost.work import ConvWork, MatmulWork
from buddysim.training.networks import kinds
from buddysim.training.networks.graph import Conv

LARGEST_FILE = 2**26
LARGEST_EXTENT = 2**20
LONGEST_MS = 1e7

WITH_PRODUCTS = ("conv", "fc")
"""Kinds of layer with matrix products; a file of timings may have any kind without products."""

REQUIRED = ("kind", "batch", "in_channels", "pass", "ms")
COUNTS = (
    "batch",
    "in_channels",
    "in_h",
    "in_w",
    "out_channels",
    "kernel_h",
    "kernel_w",
    "stride_h",
    "stride_w",
    "pad_h",
    "pad_w",
)
TEXTS = ("kind", "pass", "algorithm", "network", "layer")
COLUMNS = (*TEXTS[:1], *COUNTS, *TEXTS[1:], "ms")

Extent = Annotated[int, Field(ge=1, le=LARGEST_EXTENT)]
Pad = Annotated[int, Field(ge=0, le=LARGEST_EXTENT)]


class TimingFields(Schema):
    """The cells of a row; an empty one has the default."""

    kind: Filled
    batch: Extent = 1
    in_channels: Extent = 1
    in_h: Extent = 1
    in_w: Extent = 1
    out_channels: Pad = 0
    kernel_h: Extent = 1
    kernel_w: Extent = 1
    stride_h: Extent = 1
    stride_w: Extent = 1
    pad_h: Pad = 0
    pad_w: Pad = 0
    pass_: Annotated[Literal["forward", "backward_data", "backward_filter", "backward"], Field(alias="pass")]
    algorithm: str = ""
    ms: Annotated[float, Field(gt=0, le=LONGEST_MS)]
    network: str = ""
    layer: str = ""


@dataclass(frozen=True)
class MeasuredPass:
    """Measured pass of a layer.

    For a fully connected layer, `batch` is the number of rows, `in_channels` its inputs and `out_channels` its outputs.
    A layer without weights has the shape of its input. ``backward`` of a CONV or FC is both of its backward passes
    together.
    """

    kind: str
    batch: int
    in_channels: int
    in_h: int
    in_w: int
    out_channels: int
    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int
    pad_h: int
    pad_w: int
    pass_: str
    algorithm: str
    ms: float
    network: str = ""
    layer: str = ""

    @property
    def shape(self) -> str:
        """Return the shape's name, without batch and pass: the unit that is held out."""
        window = f"{self.kernel_w}x{self.kernel_h}-{self.pad_w}{self.pad_h}-{self.stride_w}{self.stride_h}"
        shape = f"{self.in_w}x{self.in_h}x{self.in_channels}-{self.out_channels}-{window}"
        return shape if self.kind == "conv" else f"{self.kind} {shape}"

    @property
    def has_products(self) -> bool:
        """Return whether computation may bound the layer; device memory bounds every other layer."""
        return self.kind in WITH_PRODUCTS

    @property
    def work(self) -> ConvWork:
        """Return the work of a CONV."""
        out_h = (self.in_h + 2 * self.pad_h - self.kernel_h) // self.stride_h + 1
        out_w = (self.in_w + 2 * self.pad_w - self.kernel_w) // self.stride_w + 1
        conv = Conv(
            self.in_channels,
            self.out_channels,
            self.in_h,
            self.in_w,
            out_h,
            out_w,
            self.kernel_h,
            self.kernel_w,
            self.stride_h,
            self.stride_w,
            self.pad_h,
            self.pad_w,
        )
        return ConvWork(conv, self.batch)

    @property
    def product(self) -> MatmulWork:
        """Return the forward matrix product of a fully connected layer."""
        return MatmulWork(self.batch, self.out_channels, self.in_channels)

    @property
    def group(self) -> str:
        """Return the group, whose timings have one efficiency: the class of a CONV, else the kind of layer."""
        return self.work.conv_class if self.kind == "conv" else self.kind


@within_budget
def read_timings(path: str | os.PathLike[str]) -> list[MeasuredPass]:
    """Read the timings of a file.

    Raises
    ------
    BuddysimError
        if the file cannot be read or is invalid
    """
    return parse_timings(read_text(path, "file of timings", LARGEST_FILE), os.fspath(path))


def parse_timings(text: str, where: str) -> list[MeasuredPass]:
    """Parse the text of a file of timings.

    Parameters
    ----------
    where : name of the file, for errors

    Raises
    ------
    BuddysimError
        if the header or a row is invalid; the message has the row's number
    """
    rows = csv_rows(text, where)
    header_row = next(rows, None)
    if header_row is None:
        raise BuddysimError(f"{where}: no header: expected a row with the columns {', '.join(REQUIRED)} and more")
    number, header = header_row[0], [name.strip() for name in header_row[1]]
    for name in header:
        if name not in COLUMNS:
            raise BuddysimError(f"{where}: row {number}: {shortened(name)} is not a column{hint(name, COLUMNS)}")
        if header.count(name) > 1:
            raise BuddysimError(f"{where}: row {number}: the column {name} is there twice")
    for name in REQUIRED:
        if name not in header:
            raise BuddysimError(f"{where}: row {number}: the column {name} is missing")
    timings = []
    for number, cells in rows:
        if len(cells) != len(header):
            raise BuddysimError(f"{where}: row {number}: expected {len(header)} cells, found {len(cells)}")
        row = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
        timings.append(_timing(row, f"{where}: row {number}"))
    if not timings:
        raise BuddysimError(f"{where}: no measurements after the header")
    return timings


def _timing(row: dict[str, str], where: str) -> MeasuredPass:
    cells = checked_cells(TimingFields, {name: cell for name, cell in row.items() if cell}, where)
    if cells.kind not in (known := timed_kinds()):
        raise BuddysimError(f"{where}: kind: expected one of {', '.join(known)}{hint(cells.kind, known)}, got "
                            f"{shortened(cells.kind)}")  # fmt: skip
    weighted = cells.kind in WITH_PRODUCTS
    if not weighted and cells.pass_ not in ("forward", "backward"):
        raise BuddysimError(f"{where}: pass: a {cells.kind} layer has forward and backward, not {cells.pass_}")
    if weighted and not cells.out_channels:
        raise BuddysimError(f"{where}: out_channels: a {cells.kind} layer needs it")
    for side, name, window, extent in (
        ("h", "height", cells.kernel_h, cells.in_h + 2 * cells.pad_h),
        ("w", "width", cells.kernel_w, cells.in_w + 2 * cells.pad_w),
    ):
        if window > extent:
            raise BuddysimError(
                f"{where}: kernel_{side}: a window of {window} is larger than the padded {name} of the input"
            )
    return MeasuredPass(**cells.model_dump())


def timed_kinds() -> tuple[str, ...]:
    """Return the kinds of layer that a file may have timings of: CONV, FC and all without products."""
    moving = (name for name, kind in kinds.REGISTRY.items() if kind.moves is not None)
    return (*WITH_PRODUCTS, *sorted(moving))


def timings_text(timings: Iterable[MeasuredPass], comments: Iterable[str]) -> str:
    """Return the text of a file of timings, in the format of `read_timings`.

    Parameters
    ----------
    comments : comment lines at the top, without ``#``
    """
    out = io.StringIO(newline="")
    for comment in comments:
        out.write(f"# {comment}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    names = {field.name.rstrip("_"): field.name for field in fields(MeasuredPass)}
    for timing in timings:
        writer.writerow([getattr(timing, names[column]) for column in COLUMNS])
    return out.getvalue()
