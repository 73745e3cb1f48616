"""The measured curves, and the GPUs (cards) that they were measured on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import Field

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.schema import Schema, checked_cells
from buddysim.base.textfile import csv_rows, parse_toml, read_text
from buddysim.machine import Machine

_DATA = resources.files("buddysim.validation") / "data"
LARGEST_FILE = 2**24


class CurveFields(Schema):
    """The cells of a row."""

    gpu: str
    source: str
    benchmark: str
    x_unit: str
    x: Annotated[float, Field(ge=0)]
    y_unit: str
    y: Annotated[float, Field(gt=0)]
    clock_mhz: str


COLUMNS = tuple(CurveFields.model_fields)

CHASE = "pointer_chase_latency"
PER_SM = "load_bandwidth_per_sm_working_set"
SHARED = "load_bandwidth_shared_working_set"
STREAM = "stream_"
STRIDES = "strided_l1_load"


@dataclass(frozen=True)
class Card:
    """A GPU that was measured.

    Attributes
    ----------
    name : as the measurements call it
    machine : the preset that stands for it
    about : description of the card
    clocks : keys of the machine file that its clocks change
    sources : of the clocks
    code : its architecture, as NVIDIA's compilers call it; "none": not known
    """

    name: str
    machine: str
    about: str
    clocks: Mapping[str, str]
    sources: Mapping[str, str]
    code: str = "none"

    def at_its_clocks(self) -> Machine:
        """Return the preset at the clocks of the card."""
        return Machine.load(self.machine).with_overrides(self.clocks)


@dataclass(frozen=True)
class MeasuredCurve:
    """A measured curve.

    Attributes
    ----------
    card, source, benchmark : which
    x, y : its points, in order of x
    code : architecture of the card's code, of which STREAM's kernels have their instructions; "none": not known
    """

    card: str
    source: str
    benchmark: str
    x: Sequence[float]
    y: Sequence[float]
    code: str = "none"

    @property
    def name(self) -> str:
        return f"{self.card}, {self.benchmark} ({self.source})"

    @property
    def is_latency(self) -> bool:
        return self.benchmark == CHASE

    def compared(self) -> list[tuple[float, float]]:
        """Return the points that are compared (docs/validation/method.md)."""
        step = next((step for max_points, step in ((20, 1), (100, 2)) if len(self.x) <= max_points), 4)
        return list(zip(self.x, self.y, strict=True))[::step]


def load_cards() -> dict[str, Card]:
    """Return every card that has bundled curves, by name."""
    content = parse_toml((_DATA / "cards.toml").read_text(encoding="utf-8"), "cards.toml")
    return {
        name: Card(name, card["machine"], card["about"], card["clocks"], card["sources"], card["code"])
        for name, card in content.items()
    }


@within_budget
def load_curves(path: Path | None = None) -> list[MeasuredCurve]:
    """Return the curves of a file of measurements, in its order; without a file, the bundled ones.

    Raises
    ------
    BuddysimError
        where the file is no table of curves
    """
    if path is None:
        text, where = (_DATA / "gpu_curves.csv").read_text(encoding="utf-8"), "gpu_curves.csv"
    else:
        text, where = read_text(path, "table of measured curves", LARGEST_FILE), str(path)
    rows = csv_rows(text, where)
    if tuple(next(rows, (0, []))[1]) != COLUMNS:
        raise BuddysimError(f"{where}: not a table of measured curves: expected the columns {','.join(COLUMNS)}")
    points: dict[tuple[str, str, str], dict[float, float]] = {}
    for number, cells in rows:
        row = _fields(cells, f"{where}: line {number}")
        points.setdefault((row.gpu, row.source, row.benchmark), {})[row.x] = row.y
    known_cards = load_cards()
    measured = []
    for (card, source, benchmark), of_curve in points.items():
        x, y = zip(*sorted(of_curve.items()), strict=True)
        code = known_cards[card].code if card in known_cards else "none"
        measured.append(MeasuredCurve(card, source, benchmark, x, y, code))
    return measured


def _fields(cells: Sequence[str], where: str) -> CurveFields:
    """Check the cells of a row."""
    if len(cells) != len(COLUMNS):
        raise BuddysimError(f"{where}: {len(cells)} columns, expected {len(COLUMNS)}")
    return checked_cells(CurveFields, dict(zip(COLUMNS, cells, strict=True)), where)
