"""Buddy Compression, ISCA version, Fig. 5a: compressors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.buddy.compressibility import mean_ratio
from buddysim.papers.buddy.digitized_figures import COMPRESSORS, figures
from buddysim.papers.buddy.means import geometric
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Buddy Compression (ISCA version), Fig. 5a: compression ratio by compressor, geometric means"
ORDER = 105
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN
_GROUPS = ("HPC", "DL")


def data(source: ResultSource) -> FigureTable:
    """Return a row for each group and compressor; the mean is over the workloads with results."""
    rows = []
    reported = figures()["fig5a_ratio_by_algorithm"]
    for algorithm in (key for key, value in reported.items() if isinstance(value, dict)):
        compressor = COMPRESSORS.get(algorithm)
        for group in _GROUPS:
            ratios = (
                [mean_ratio(source.buddy, name, compressor) for name in source.buddy.names(group)] if compressor else []
            )
            known = [ratio for ratio in ratios if ratio is not None]
            rows.append((algorithm, compressor, group, len(known), geometric(known), reported[algorithm][group]))
    if not any(row[3] for row in rows):
        rows = []
    columns = ("algorithm", "compressor", "group", "workloads", "ratio", "paper_ratio")
    return study_style.make_table(source.buddy, "fig5-compressors", columns, rows)


def draw(table: FigureTable) -> Figure:
    figure, axes = study_style.make_figure(TITLE)
    names = list(dict.fromkeys(row["algorithm"] for row in table.records()))
    labels = [f"{COMPRESSORS[name]}" if name in COMPRESSORS else f"{name}\nnot implemented" for name in names]
    series = {group: [table.rows_with(algorithm=name, group=group)[0]["ratio"] for name in names] for group in _GROUPS}
    counts = {group: max(row["workloads"] for row in table.rows_with(group=group)) for group in _GROUPS}
    positions = study_style.draw_bars(axes, labels, {f"{group} ({counts[group]})": series[group] for group in _GROUPS})
    for n, group in enumerate(_GROUPS):
        reported_ratios = [table.rows_with(algorithm=name, group=group)[0]["paper_ratio"] for name in names]
        study_style.mark_reported_values(axes, positions[n], reported_ratios, "paper" if n == 0 else None)
    axes.axhline(1, color=style.PALE, linewidth=0.6, linestyle="--")
    axes.set_ylabel("compression ratio")
    study_style.add_legend(axes)
    study_style.add_caption(
        figure, table,
        "Captured data values. bdi+fpc takes of each entry the smaller size. Compressors other than bpc: the pages "
        "whose bytes a program's trace contains represent the others. In brackets: workloads with results.",
    )  # fmt: skip
    return figure
