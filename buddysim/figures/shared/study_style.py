"""Style of the Buddy Compression study's figures: width, bars with the paper's marks, captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.figure_table import FigureTable
from buddysim.papers.buddy.buddy_study import BuddyStudy, paper_names
from buddysim.papers.buddy.digitized_figures import workloads
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN = 3.3
#: Options of the command for these figures.
OPTIONS = ("scale", "only", "workloads")
INPUTS = "Targets are profiled on another input of each program than the one that is replayed."
MEANS = {"HPC": "HPC mean", "DL": "DL mean"}
MEAN_OF_ALL = "mean of all"


def make_figure(title: str, rows: int = 1, columns: int = 1, height: float = 2.4, **more: Any) -> tuple[Figure, Any]:
    """Make a figure of one column's width, and its axes."""
    figure, axes = style.make_figure(title, rows, columns, width=WIDTH_IN, height=height, **more)
    if figure._suptitle is not None:  # type: ignore[attr-defined]
        figure._suptitle.set(fontsize=7, wrap=True)  # type: ignore[attr-defined]
    for panel in axes.flat if hasattr(axes, "flat") else [axes]:
        panel.tick_params(labelsize=6)
        panel.xaxis.label.set_fontsize(7)
        panel.yaxis.label.set_fontsize(7)
    return figure, axes


def draw_bars(axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> list[list[float]]:
    """Draw bars of several series for each group, in distinct greys; return the x of each series' bars."""
    width = 0.84 / max(len(series), 1)
    positions = []
    for n, (label, values) in enumerate(series.items()):
        shade = str(round(0.2 + 0.7 * n / max(len(series) - 1, 1), 2))
        x = [at + (n - (len(series) - 1) / 2) * width for at in range(len(groups))]
        positions.append(x)
        points = [(position, value) for position, value in zip(x, values, strict=True) if value is not None]
        if not points:
            continue
        axes.bar(
            [position for position, _ in points], [value for _, value in points], width, label=label, color=shade,
            edgecolor=style.INK, linewidth=0.3,
        )  # fmt: skip
    axes.set_xticks(range(len(groups)), groups, rotation=90)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    return positions


def mark_reported_values(
    axes: Axes, positions: Sequence[float], values: Sequence[float | None], label: str | None = "paper"
) -> None:
    """Draw the paper's values as red diamonds over simulated bars."""
    known = [(position, value) for position, value in zip(positions, values, strict=True) if value is not None]
    axes.scatter(
        [position for position, _ in known], [value for _, value in known], marker="D", s=5, facecolor="white",
        edgecolor=style.REPORTED, linewidth=0.7, zorder=5, label=label,
    )  # fmt: skip


def add_legend(axes: Axes, columns: int = 3) -> None:
    """Add a legend above the axes."""
    axes.legend(
        ncols=columns, loc="lower left", bbox_to_anchor=(0, 1.0), fontsize=6, frameon=False, handlelength=1,
        columnspacing=1, borderaxespad=0.2,
    )  # fmt: skip


def add_caption(figure: Figure, table: FigureTable, *texts: str) -> None:
    """Add a caption under the figure: sources of the values, and results that the store lacks."""
    parts = [*texts, f"Missing: {table.missing_text}." if table.missing_text else ""]
    figure.supxlabel(
        " ".join(text for text in parts if text), x=0.01, ha="left", fontsize=6, color=style.INK, wrap=True
    )


def workload_counts_text(table: FigureTable) -> str:
    """Return the number of workloads of each mean, for captions."""
    names: dict[str, set[str]] = {group: set() for group in MEANS}
    for row in table.records():
        if row["workload"] in paper_names():
            names[row["group"]].add(row["workload"])
    counts = {group: list(workloads().values()).count(group) for group in MEANS}
    return f"Means of {' and '.join(f'{len(names[group])} of {counts[group]} {group}' for group in MEANS)} workloads."


def paper_labels(names: Sequence[str]) -> list[str]:
    """Return the paper's names of workloads; means are unchanged."""
    known = paper_names()
    return [known.get(name, name) for name in names]


def make_table(study: BuddyStudy, name: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> FigureTable:
    """Return the table of a figure; an error if the store has nothing of it.

    The paper's mean is of all of its programs: it stands next to no mean of some of them.
    """
    study.require_rows(name, rows)
    simulated = {row[0] for row in rows}
    paper = {at for at, column in enumerate(columns) if column.startswith("paper_")}
    compared = []
    for row in rows:
        group = None if row[0] == MEAN_OF_ALL else row[1]
        programs = {name for name, label in paper_names().items() if group in (None, workloads()[label])}
        if row[0] in (*MEANS.values(), MEAN_OF_ALL) and not programs <= simulated:
            row = tuple(None if at in paper else value for at, value in enumerate(row))
        compared.append(row)
    return FigureTable(columns, compared, study.missing_text())
