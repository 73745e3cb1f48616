"""Measured layer times: CSV files, the input of calibration and validation.

Lines that begin with ``#`` are comments (source, licence); then a header, then one measurement per row. Columns may
come in any order; `ms` is the time of one pass in milliseconds.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.textfile import csv_rows, read_text
from buddysim.training.cost.work import ConvWork, MatmulWork
from buddysim.training.networks import kinds
from buddysim.training.networks.graph import Conv

LARGEST_FILE = 2**26
LARGEST_EXTENT = 2**20
LONGEST_MS = 1e7

WITH_PRODUCTS = ("conv", "fc")
"""Kinds of layer with matrix products; a file of timings may have any kind without products."""

PASSES = ("forward", "backward_data", "backward_filter", "backward")

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
_DEFAULTS = dict.fromkeys(COUNTS, 1) | {"pad_h": 0, "pad_w": 0, "out_channels": 0}


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
        try:
            timings.append(_timing(row))
        except ValueError as error:
            raise BuddysimError(f"{where}: row {number}: {error}") from None
    if not timings:
        raise BuddysimError(f"{where}: no measurements after the header")
    return timings


def _timing(row: dict[str, str]) -> MeasuredPass:
    kind = _choice("kind", row["kind"], timed_kinds())
    pass_ = _choice("pass", row["pass"], PASSES)
    counts = {name: _count(name, row.get(name, "")) for name in COUNTS}
    weighted = kind in WITH_PRODUCTS
    if not weighted and pass_ not in ("forward", "backward"):
        raise ValueError(f"pass: a {kind} layer has forward and backward, not {pass_}")
    if weighted and not counts["out_channels"]:
        raise ValueError(f"out_channels: a {kind} layer needs it")
    for side, name in (("h", "height"), ("w", "width")):
        if counts[f"kernel_{side}"] > counts[f"in_{side}"] + 2 * counts[f"pad_{side}"]:
            raise ValueError(
                f"kernel_{side}: a window of {counts[f'kernel_{side}']} is larger than the padded {name} of the input"
            )
    return MeasuredPass(
        kind=kind,
        pass_=pass_,
        algorithm=row.get("algorithm", ""),
        ms=_milliseconds(row["ms"]),
        network=row.get("network", ""),
        layer=row.get("layer", ""),
        **counts,
    )


def timed_kinds() -> tuple[str, ...]:
    """Return the kinds of layer that a file may have timings of: CONV, FC and all without products."""
    moving = (name for name, kind in kinds.REGISTRY.items() if kind.moves is not None)
    return (*WITH_PRODUCTS, *sorted(moving))


def _choice(name: str, text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise ValueError(f"{name}: {shortened(text)} is not one of {', '.join(known)}{hint(text, known)}")
    return text


def _count(name: str, text: str) -> int:
    least = 0 if name in ("pad_h", "pad_w", "out_channels") else 1
    if not text:
        return _DEFAULTS[name]
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and least <= int(text) <= LARGEST_EXTENT):
        raise ValueError(f"{name}: {shortened(text)} is not an integer from {least} to {LARGEST_EXTENT}")
    return int(text)


def _milliseconds(text: str) -> float:
    try:
        ms = float(text)
    except ValueError:
        raise ValueError(f"ms: {shortened(text)} is not a number") from None
    if not (math.isfinite(ms) and 0 < ms <= LONGEST_MS):
        raise ValueError(f"ms: {shortened(text)} is not a time of more than 0 and at most {LONGEST_MS:g} ms")
    return ms


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
