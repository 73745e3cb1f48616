"""Two or three columns of a sweep as lines or a heatmap; its numbers in a CSV file next to the figure.

STUDY.toml is a study file (docs/reference/study-files.md); missing points are simulated first. ``--x`` and ``--y``
name columns,
``--by`` the column with a value for each line, or with ``--kind heatmap`` the vertical axis.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint
from buddysim.figures.shared.result_source import ResultSource, displayable
from buddysim.machine.units import FREQUENCY_UNITS, SIZE_UNITS, TIME_UNITS
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "sweep: one column by another, a line for each value of a third"
FILE = ("STUDY.toml", "a study file")
ORDER = 20
#: Options of the command that it takes.
OPTIONS = ("x", "y", "by", "kind")

KINDS = ("line", "heatmap")
_MAX_LINES = len(style.SERIES)
#: Of columns of results by the end of their name: unit, and its multiples.
_UNITS = {
    "_ps": ("ps", TIME_UNITS),
    "_ms": ("ms", {}),
    "_bytes": ("B", {unit: SIZE_UNITS[unit] for unit in ("B", "KiB", "MiB", "GiB")}),
}
_QUANTITY = re.compile(r"\s*[\d.eE+-]+\s*(?P<unit>[A-Za-z]+(/s)?)\s*")


@dataclass(frozen=True)
class SweepFigureData:
    """Data of the figure.

    Attributes
    ----------
    title : title of the figure
    x, y, by : names of the columns; `by` may be None
    kind : of `KINDS`
    rows : values of x, by and y, sorted by the first two
    scales : by column, the unit of the study's values and how many base units it is
    has_synthetic_sizes : whether some points have synthetic sizes
    """

    title: str
    x: str
    y: str
    by: str | None
    kind: str
    rows: list[tuple[Any, Any, float]]
    scales: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    has_synthetic_sizes: bool = False

    def csv_rows(self) -> list[list[Any]]:
        """A heading and the numbers, for the CSV file."""
        columns = [self.x, *([self.by] if self.by else []), self.y]
        return [columns, *([x, *([by] if self.by else []), y] for x, by, y in self.rows)]


def data(source: ResultSource) -> SweepFigureData:
    """Return the columns of the study that the options name."""
    options = source.columns
    results = source.study(wants=options.get("y"))
    rows = results.rows()
    if not rows:
        raise BuddysimError(f"{source.file}: none of its points has a result")
    known = sorted({name for row in rows for name in row})
    varied = [name for name in results.plan.study.varied if name in known]
    x = options.get("x") or next((name for name in varied if _numeric(rows, name)), varied[0] if varied else None)
    if x is None:
        raise BuddysimError(f"{source.file}: nothing varies: expected --x and the name of a column")
    y = options.get("y") or _default_y(rows)
    by = options.get("by") or next((name for name in varied if name != x), None)
    for option, name in (("--x", x), ("--y", y), ("--by", by)):
        if name is not None and name not in known:
            raise BuddysimError(f"{option} {name}: unknown column{hint(name, known)}")
    kind = options.get("kind") or KINDS[0]
    if kind == "heatmap" and by is None:
        raise BuddysimError("--kind heatmap: expected --by and the name of a column for the vertical axis")
    points = _points(rows, x, by, y)
    if kind == "line" and len({point[1] for point in points}) > _MAX_LINES:
        raise BuddysimError(f"--by {by}: more than {_MAX_LINES} lines: expected a column with fewer values")
    has_synthetic_sizes = any(row.get("sizes.synthetic_fraction") for row in rows)
    study = results.plan.study
    scales = {name: _given_unit(study.axes, name) or _best_unit(rows, name) for name in (x, y, by) if name is not None}
    return SweepFigureData(displayable(study.title), x, y, by, kind, points, scales, has_synthetic_sizes)


def draw(plotted: SweepFigureData) -> Figure:
    """Draw lines or a heatmap."""
    figure, axes = style.make_figure(f"{plotted.title}: {_name(plotted.y)} by {_name(plotted.x)}")
    rows = [
        (_scaled(plotted, plotted.x, x), _scaled(plotted, plotted.by, by), _scaled(plotted, plotted.y, y))
        for x, by, y in plotted.rows
    ]
    positions, labels = _axis_positions([x for x, _, _ in rows])
    if plotted.kind == "heatmap":
        _draw_heatmap(figure, axes, plotted, rows)
        return figure
    groups: dict[Any, list[tuple[Any, float]]] = {}
    for x, by, y in rows:
        groups.setdefault(by, []).append((positions[x], y))
    for number, (by, points) in enumerate(groups.items()):
        marker = "o-" if len(points) > 1 else "o"
        colour = style.SERIES[number % len(style.SERIES)]
        axes.plot([x for x, _ in points], [y for _, y in points], marker, color=colour, label=_label(by), markersize=4)
    if labels is not None:
        axes.set_xticks(range(len(labels)), labels)
    axes.set(
        xlabel=_with_unit(plotted, plotted.x),
        ylabel=_with_unit(plotted, plotted.y) + (", synthetic sizes" if plotted.has_synthetic_sizes else ""),
    )
    if all(y >= 0 for _, _, y in rows):
        axes.set_ylim(bottom=0)
    if plotted.by is not None:
        style.add_legend(axes, min(len(groups), 6), title=_with_unit(plotted, plotted.by))
    return figure


def _draw_heatmap(figure: Figure, axes: Any, plotted: SweepFigureData, rows: list[tuple[Any, Any, Any]]) -> None:
    across = sorted({x for x, _, _ in rows}, key=_order)
    up = sorted({by for _, by, _ in rows}, key=_order)
    values = [[float("nan")] * len(across) for _ in up]
    for x, by, y in rows:
        values[up.index(by)][across.index(x)] = y
    image = axes.imshow(values, aspect="auto", origin="lower", cmap="cividis")
    axes.set_xticks(range(len(across)), [_label(x) for x in across])
    axes.set_yticks(range(len(up)), [_label(by) for by in up])
    axes.set(xlabel=_with_unit(plotted, plotted.x), ylabel=_with_unit(plotted, str(plotted.by)))
    figure.colorbar(image, ax=axes, label=_with_unit(plotted, plotted.y))


def _points(rows: list[dict[str, Any]], x: str, by: str | None, y: str) -> list[tuple[Any, Any, float]]:
    """Return one value of y for each x and line; an error if points differ in something that is not plotted."""
    values: dict[tuple[Any, Any], float] = {}
    for row in rows:
        value = row.get(y)
        if value is None:
            continue
        if isinstance(value, str):
            raise BuddysimError(f"--y {y}: not a number: expected a column of numbers")
        key = row.get(x), row.get(by) if by is not None else None
        if values.setdefault(key, float(value)) != float(value):
            raise BuddysimError(
                f"several values of {y} where {x} is {_label(key[0])}{f' and {by} is {_label(key[1])}' if by else ''}: "
                "the study varies another column, too: expected --by, or a study that does not vary it"
            )
    if not values:
        raise BuddysimError(f"--y {y}: no point has a value")
    return sorted(
        ((x_value, by_value, y_value) for (x_value, by_value), y_value in values.items()),
        key=lambda point: (_order(point[1]), _order(point[0])),
    )


def _default_y(rows: list[dict[str, Any]]) -> str:
    for name in ("slowdown_vs_ideal", "performance_vs_oracle", "time_ps", "time_ms"):
        if any(row.get(name) is not None for row in rows):
            return name
    raise BuddysimError("--y: missing: expected the name of a column")


def _numeric(rows: list[dict[str, Any]], name: str) -> bool:
    return all(isinstance(row.get(name), int | float) and not isinstance(row.get(name), bool) for row in rows)


def _axis_positions(values: list[Any]) -> tuple[dict[Any, float], list[str] | None]:
    """Return the positions of values on an axis: numbers at their value, texts in order, with labels."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return {value: float(value) for value in values}, None
    ordered = sorted(set(values), key=_order)
    return {value: float(position) for position, value in enumerate(ordered)}, [_label(value) for value in ordered]


def _order(value: Any) -> tuple[bool, Any]:
    is_text = not isinstance(value, int | float)
    return is_text, str(value) if is_text else value


def _label(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value).rsplit("/", 1)[-1]
    return displayable(text)


def _given_unit(axes: Sequence[Sequence[Mapping[str, Any]]], name: str) -> tuple[str, int] | None:
    """Return the unit that all of a study's values of a name have, and how many base units it is."""
    texts = [settings[name] for axis in axes for settings in axis if name in settings]
    matches = [_QUANTITY.fullmatch(text) if isinstance(text, str) else None for text in texts]
    units = {match["unit"] for match in matches if match is not None}
    if len(units) != 1 or None in matches:
        return None
    (unit,) = units
    factor = {**SIZE_UNITS, **TIME_UNITS, **FREQUENCY_UNITS}.get(unit.removesuffix("/s"))
    return None if factor is None else (unit, factor)


def _best_unit(rows: list[dict[str, Any]], name: str) -> tuple[str, int]:
    """Return the largest unit in which a column's largest value is 1 or more."""
    base, multiples = next((unit for end, unit in _UNITS.items() if name.endswith(end)), ("", {}))
    largest = max((abs(row[name]) for row in rows if isinstance(row.get(name), int | float)), default=0)
    fitting = [(factor, unit) for unit, factor in multiples.items() if factor <= largest]
    factor, unit = max(fitting, default=(1, base))
    return unit, factor


def _scaled(plotted: SweepFigureData, name: str | None, value: Any) -> Any:
    _, factor = plotted.scales.get(str(name), ("", 1))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value / factor if is_number and factor != 1 else value


def _name(column: str) -> str:
    """Return a column's name in words, without its unit."""
    end = next((end for end in _UNITS if column.endswith(end)), "")
    return column.removesuffix(end).replace("_", " ").replace(".", " ")


def _with_unit(plotted: SweepFigureData, column: str) -> str:
    unit, _ = plotted.scales.get(column, ("", 1))
    return f"{_name(column)}, {unit}" if unit else _name(column)
