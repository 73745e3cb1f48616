"""Buddy Compression, ISCA version, Fig. 5b: fraction of entries of each size class."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.buddy.compressibility import class_fractions
from buddysim.papers.buddy.digitized_figures import figures
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Buddy Compression (ISCA version), Fig. 5b: fraction of entries of each size class"
ORDER = 106
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN


def data(source: ResultSource) -> FigureTable:
    """Return a row for each workload, for the mean of each group, and for the paper's; fractions of each size."""
    reported = figures()["fig5b_fraction_of_entries_per_size"]
    sizes, rows = reported["sizes"], []
    for group in ("HPC", "DL"):
        fractions_by_workload = {name: class_fractions(source.buddy, name) for name in source.buddy.names(group)}
        known = {name: fractions for name, fractions in fractions_by_workload.items() if fractions is not None}
        rows += [(name, group, *(fractions[size] for size in sizes)) for name, fractions in known.items()]
        if known:
            rows.append(
                (f"{group} mean", group, *(fmean(fractions[size] for fractions in known.values()) for size in sizes))
            )
            rows.append((f"{group} paper", group, *reported[group]))
    columns = ("workload", "group", *(f"fraction_{size}B" for size in sizes))
    return study_style.make_table(source.buddy, "fig5-classes", columns, rows)


def draw(table: FigureTable) -> Figure:
    figure, axes = study_style.make_figure(TITLE, height=3.0)
    rows = table.records()
    bottoms = [0.0] * len(rows)
    sizes = [column for column in table.columns if column.startswith("fraction_")]
    for n, column in enumerate(sizes):
        shade = str(round(1 - 0.9 * n / (len(sizes) - 1), 2))
        fractions = [row[column] for row in rows]
        axes.bar(
            range(len(rows)), fractions, 0.8, bottom=bottoms, color=shade, edgecolor=style.INK, linewidth=0.3,
            label=f"{column[6:-1]} B",
        )  # fmt: skip
        bottoms = [below + fraction for below, fraction in zip(bottoms, fractions, strict=True)]
    axes.set_xticks(range(len(rows)), study_style.paper_labels([row["workload"] for row in rows]), rotation=90)
    for label in axes.get_xticklabels():
        if label.get_text().endswith("paper"):
            label.set_color(style.REPORTED)
    axes.set_ylabel("fraction of entries")
    axes.set_ylim(0, 1)
    study_style.add_legend(axes, 4)
    study_style.add_caption(
        figure,
        table,
        "Captured data values: entry sizes by bpc, mean over ten snapshots. Means of workloads are arithmetic.",
    )
    return figure
