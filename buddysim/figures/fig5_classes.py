"""Buddy Compression, ISCA version, Fig. 5b: share of entries of each size class."""

from __future__ import annotations

from statistics import fmean

from matplotlib.figure import Figure

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.buddy.compressibility import class_shares
from buddysim.papers.buddy.digitized_figures import figures
from buddysim.plotting import style

TITLE = "Buddy Compression (ISCA version), Fig. 5b: share of entries of each size class"
ORDER = 106
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN


def data(source: ResultSource) -> FigureTable:
    """A row for each workload, for the mean of each group, and for the paper's; shares of each size."""
    theirs = figures()["fig5b_fraction_of_entries_per_size"]
    sizes, rows = theirs["sizes"], []
    for group in ("HPC", "DL"):
        found = {name: class_shares(source.buddy, name) for name in source.buddy.names(group)}
        known = {name: shares for name, shares in found.items() if shares is not None}
        rows += [(name, group, *(shares[size] for size in sizes)) for name, shares in known.items()]
        if known:
            rows.append((f"{group} mean", group, *(fmean(shares[size] for shares in known.values()) for size in sizes)))
            rows.append((f"{group} paper", group, *theirs[group]))
    columns = ("workload", "group", *(f"fraction_{size}B" for size in sizes))
    return study_style.make_table(source.buddy, "fig5-classes", columns, rows)


def draw(table: FigureTable) -> Figure:
    drawn, axes = study_style.make_figure(TITLE, height=3.0)
    rows = table.records()
    bottoms = [0.0] * len(rows)
    sizes = [column for column in table.columns if column.startswith("fraction_")]
    for n, column in enumerate(sizes):
        shade = str(round(1 - 0.9 * n / (len(sizes) - 1), 2))
        shares = [row[column] for row in rows]
        axes.bar(
            range(len(rows)), shares, 0.8, bottom=bottoms, color=shade, edgecolor=style.INK, linewidth=0.3,
            label=f"{column[6:-1]} B",
        )  # fmt: skip
        bottoms = [below + share for below, share in zip(bottoms, shares, strict=True)]
    axes.set_xticks(range(len(rows)), study_style.paper_labels([row["workload"] for row in rows]), rotation=90)
    for label in axes.get_xticklabels():
        if label.get_text().endswith("paper"):
            label.set_color(style.REPORTED)
    axes.set_ylabel("share of entries")
    axes.set_ylim(0, 1)
    study_style.add_legend(axes, 4)
    study_style.add_caption(
        drawn, table, "Measured by bpc, mean over ten points of the run; means over workloads arithmetic."
    )
    return drawn
