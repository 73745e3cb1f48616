"""Rows of measured operators: the files that ship, and a user's own.

Each kind has a file of its own. Lines that begin with ``#`` are comments: letters of sources.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.textfile import csv_rows
from buddysim.training.cost.operators.split import CHECKED_MODELS, FITTED_SOURCES, checks

PRODUCTS = ("gpu", "format", "batch", "m", "n", "k", "source", "us")
ATTENTION = ("gpu", "kernel", "batch", "tokens", "heads", "kv_heads", "head_size", "window", "us")
LAUNCHES = ("gpu", "launcher", "operators", "us")
MEMORY = ("gpu", "kind", "bytes", "row", "source", "us")
EXPERTS = ("gpu", "kernel", "tokens", "hidden", "inner", "per_token", "experts", "ranks", "us")

ITERATIONS = (
    "source", "id", "gpu", "model", "recipe", "attention", "compile", "loss", "tokens", "batch", "accumulation",
    "recompute", "gpus", "sharding", "part", "ms",
)  # fmt: skip

ENGINES = "engines"
"""File of steps of engines with kernels of their own, in the columns of `ITERATIONS`: shown, in no error."""

OUTSIDE = "outside"
"""File of products on GPUs that have no constants of their own, in the columns of `PRODUCTS`: in no fit."""

FILES = {"products": PRODUCTS, "attention": ATTENTION, "memory": MEMORY, "experts": EXPERTS}
"""Columns of each file, by its name."""

USER_FILES = {**FILES, "attention_backward": ATTENTION, "launches": LAUNCHES}
"""The same of a user's own measurements, with what public ones lack: attention backward, the host's time to launch."""

SHORTEST_US, LONGEST_US = 1e-3, 1e9
LARGEST_EXTENT, LARGEST_BYTES = 2**20, 2**40

_TEXTS = ("gpu", "format", "kernel", "kind", "source", "launcher")
_DATA = resources.files("buddysim.training.cost") / "data" / "operators"


@dataclass(frozen=True)
class TimedStep:
    """A measured training step of PyTorch, or one pass of it; of several micro-steps, one.

    Attributes
    ----------
    attention : eager, flash (of PyTorch) or flash1 (FlashAttention's first package)
    recompute : none, full or selective
    gpus : that work on the step
    sharding : fsdp (weights, gradients and optimizer are shared), ddp or none
    part : step, forward or backward
    """

    source: str
    id: str
    gpu: str
    model: str
    recipe: str
    attention: str
    compile: str
    loss: str
    tokens: int
    batch: int
    accumulation: int
    recompute: str
    gpus: int
    sharding: str
    part: str
    ms: float

    @property
    def fitted(self) -> bool:
        """Whether constants were fitted to it."""
        return self.source in FITTED_SOURCES and self.model not in CHECKED_MODELS


def read_steps(file: str = "iterations") -> list[TimedStep]:
    """Return the measured steps that ship: of PyTorch, or of `ENGINES`."""
    rows = csv_rows((_DATA / f"{file}.csv").read_text(encoding="utf-8"), f"{file}.csv")
    next(rows)
    steps = []
    for _, cells in rows:
        texts = dict(zip(ITERATIONS, cells, strict=True))
        numbers = {name: int(texts.pop(name)) for name in ("tokens", "batch", "accumulation", "gpus")}
        ms = float(texts.pop("ms"))
        steps.append(TimedStep(**texts, **numbers, ms=ms))  # type: ignore[arg-type]
    return steps


@dataclass(frozen=True)
class MeasuredOperator:
    """A measured operator.

    Attributes
    ----------
    name : number format, kernel or kind, by the file
    extents : the columns that are integers, in order
    us : microseconds
    source : letter of its source; empty where the file has one source alone
    """

    gpu: str
    name: str
    extents: tuple[int, ...]
    us: float
    source: str = ""

    @property
    def checks(self) -> bool:
        """Whether the row is for checking alone."""
        return checks(self.extents)


def read_rows(file: str) -> list[MeasuredOperator]:
    """Return the rows that ship of one of `FILES`."""
    return parse_rows((_DATA / f"{file}.csv").read_text(encoding="utf-8"), file, f"{file}.csv")


def read_outside() -> list[MeasuredOperator]:
    """Return the products of `OUTSIDE`."""
    return parse_rows((_DATA / f"{OUTSIDE}.csv").read_text(encoding="utf-8"), "products", f"{OUTSIDE}.csv")


def user_file(text: str, path: str | os.PathLike[str]) -> str | None:
    """Return which of `USER_FILES` a file is, by its columns and its name; None: another kind of file."""
    _, header = next(csv_rows(text, os.fspath(path)), (0, []))
    names = [name for name, columns in USER_FILES.items() if tuple(header) == columns]
    return Path(path).stem if Path(path).stem in names else next(iter(names), None)


def parse_rows(text: str, file: str, where: str) -> list[MeasuredOperator]:
    """Parse rows of a file.

    Parameters
    ----------
    file : a key of `USER_FILES`
    where : name of the file, for errors

    Raises
    ------
    BuddysimError
        a header or a row that is wrong; the message has the row's number
    """
    columns = USER_FILES[file]
    rows = csv_rows(text, where)
    _, header = next(rows, (0, []))
    if tuple(header) != columns:
        raise BuddysimError(f"{where}: header {','.join(header)}: expected {','.join(columns)}")
    measured = []
    for number, cells in rows:
        try:
            measured.append(_row(columns, dict(zip(columns, cells, strict=True))))
        except ValueError:
            expected = f"expected {','.join(columns)}, us from {SHORTEST_US:g} to {LONGEST_US:g}"
            raise BuddysimError(f"{where}: row {number}: {expected}") from None
    return measured


def _row(columns: tuple[str, ...], cells: dict[str, str]) -> MeasuredOperator:
    extents = {name: int(cells[name]) for name in columns if name not in (*_TEXTS, "us")}
    us = float(cells["us"])
    within = all(
        (name != "window") <= extent <= (LARGEST_BYTES if name == "bytes" else LARGEST_EXTENT)
        for name, extent in extents.items()
    )
    if not within or not SHORTEST_US <= us <= LONGEST_US:
        raise ValueError("out of range")
    return MeasuredOperator(cells["gpu"], cells[columns[1]], tuple(extents.values()), us, cells.get("source", ""))
