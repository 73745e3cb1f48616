"""Buddy Compression, Fig. 3: compression ratio over the run of each workload."""

from __future__ import annotations

from statistics import geometric_mean
from typing import TYPE_CHECKING

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.buddy.buddy_study import paper_names
from buddysim.papers.buddy.compressibility import ratios_over_run
from buddysim.papers.buddy.digitized_figures import AXIS, figures, workloads
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Buddy Compression, Fig. 3: compression ratio over the run, a size class per entry"
ORDER = 103
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN
_ACROSS = 4


def data(source: ResultSource) -> FigureTable:
    """Return a row for each workload and snapshot."""
    rows = []
    reported_ratios = figures()["fig3_ratio_over_time_10_snapshots"]
    for group in ("HPC", "DL"):
        for name in source.buddy.names(group):
            ratios = ratios_over_run(source.buddy, name)
            paper = reported_ratios[paper_names()[name]]
            for number, ratio in enumerate(ratios or ()):
                rows.append((name, group, number, ratio, paper[number] if number < len(paper) else None))
    return study_style.make_table(source.buddy, "fig3", ("workload", "group", "snapshot", "ratio", "paper_ratio"), rows)


def draw(table: FigureTable) -> Figure:
    names = list(dict.fromkeys(row["workload"] for row in table.records()))
    down = -(-len(names) // _ACROSS)
    figure, axes = study_style.make_figure(
        TITLE, down, min(_ACROSS, len(names)), height=1.2 + 0.75 * down, sharex=True, sharey=True, squeeze=False
    )
    for panel, name in zip(axes.flat, names, strict=False):
        rows = table.rows_with(workload=name)
        x = [row["snapshot"] + 1 for row in rows]
        panel.plot(x, [row["ratio"] for row in rows], "o-", color=style.INK, markersize=1.5, linewidth=0.9)
        reported_ratios = [row["paper_ratio"] for row in rows]
        panel.plot(
            x, reported_ratios, "D--", color=style.REPORTED, markersize=1.5, linewidth=0.7, markerfacecolor="white"
        )
        panel.set_title(study_style.paper_labels([name])[0], fontsize=6, pad=2)
        panel.axhline(1, color=style.PALE, linewidth=0.5, linestyle="--")
        panel.set_ylim(0.8, AXIS + 0.5)
    for panel in axes.flat[len(names) :]:
        panel.set_visible(False)
    figure.supylabel("compression ratio", fontsize=7)
    study_style.add_caption(
        figure, table,
        f"Ten snapshots of the run; black: simulated, on captured data; red: the paper's (none: above {AXIS:g}).",
        *(_mean_text(table, group) for group in ("HPC", "DL")),
    )  # fmt: skip
    return figure


def _mean_text(table: FigureTable, group: str) -> str:
    rows = [row for row in table.rows_with(group=group) if row["ratio"]]
    if not rows:
        return ""
    count, all_of_group = len({row["workload"] for row in rows}), list(workloads().values()).count(group)
    simulated = geometric_mean(row["ratio"] for row in rows)
    reported = reported_value(f"buddy-fig3-{group.lower()}")
    return (
        f"{group}, geometric mean: simulated {simulated:.2f} ({count} of {all_of_group} workloads), paper {reported:g} "
        "(all)."
    )
