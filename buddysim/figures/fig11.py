"""Buddy Compression, Fig. 11: performance with links of several bandwidths, and of bandwidth compression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.buddy.means import geometric
from buddysim.papers.buddy.performance_numbers import (
    BANDWIDTH,
    BASELINE_GBS,
    LINKS_GBS,
    link_text,
    performance,
    performances,
)
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Buddy Compression, Fig. 11: performance relative to unlimited memory with a link of 150 GB/s"
ORDER = 113
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN
COLUMNS = ("workload", "group", "system", "performance", "same_input_performance", "paper_performance")
_SYSTEMS = (BANDWIDTH, *map(link_text, LINKS_GBS))


def _reported() -> dict[tuple[str, str], float]:
    """The paper's means and single points, as performance."""
    return {
        ("HPC mean", link_text(150)): 1 - reported_value("buddy-150-hpc") / 100,
        ("DL mean", link_text(150)): 1 - reported_value("buddy-150-dl") / 100,
        (study_style.MEAN_OF_ALL, link_text(200)): 1 + reported_value("buddy-200-all") / 100,
        (study_style.MEAN_OF_ALL, link_text(50)): 1 - reported_value("buddy-50-all") / 100,
        (study_style.MEAN_OF_ALL, BANDWIDTH): 1 + reported_value("buddy-bandwidth-all") / 100,
        ("alexnet", link_text(150)): 1 - reported_value("buddy-alexnet-150") / 100,
        ("alexnet", link_text(50)): 1 - reported_value("buddy-alexnet-50") / 100,
    }


def data(source: ResultSource) -> FigureTable:
    """Return a row for each workload and system, then the geometric means of the stored results."""
    rows: list[tuple[Any, ...]] = []
    for group in ("HPC", "DL"):
        of_group = []
        for name in source.buddy.names(group):
            mean_rows = performances(source.buddy, name)
            for gbs in LINKS_GBS:
                performance(source.buddy, name, "buddy", gbs, same_input=True)
            if None in mean_rows.values():
                continue
            for system, relative_performance in mean_rows.items():
                gbs = next((gbs for gbs in LINKS_GBS if link_text(gbs) == system), BASELINE_GBS)
                same = None if system == BANDWIDTH else performance(source.buddy, name, "buddy", gbs, same_input=True)
                of_group.append((name, group, system, relative_performance, same, _reported().get((name, system))))
        rows += of_group + _means(study_style.MEANS[group], group, of_group)
    every = [row for row in rows if row[0] not in study_style.MEANS.values()]
    return study_style.make_table(source.buddy, "fig11", COLUMNS, rows + _means(study_style.MEAN_OF_ALL, "all", every))


def _means(label: str, group: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    mean_rows = []
    for system in _SYSTEMS if rows else ():
        system_rows = [row for row in rows if row[2] == system]
        means = geometric(row[3] for row in system_rows), geometric(row[4] for row in system_rows)
        mean_rows.append((label, group, system, *means, _reported().get((label, system))))
    return mean_rows


def draw(table: FigureTable) -> Figure:
    figure, axes = study_style.make_figure(TITLE, height=2.8)
    names = list(dict.fromkeys(row["workload"] for row in table.records()))
    series = {system: [row["performance"] for row in table.rows_with(system=system)] for system in _SYSTEMS}
    positions = study_style.draw_bars(axes, study_style.paper_labels(names), series)
    for n, system in enumerate(_SYSTEMS):
        reported = [row["paper_performance"] for row in table.rows_with(system=system)]
        study_style.mark_reported_values(axes, positions[n], reported, "paper (text)" if n == 0 else None)
    axes.axhline(1, color=style.INK, linewidth=0.7, linestyle="--")
    axes.set_ylabel("speedup over ideal")
    study_style.add_legend(axes, 4)
    study_style.add_caption(
        figure, table,
        "Modelled: replays of one step; bandwidth: compression between L2 and device memory alone; the others: Buddy "
        "Compression by the link's bandwidth each way. Means are geometric.",
        study_style.INPUTS, study_style.workload_counts_text(table),
        "The paper's bars could not be read: red marks are the values that its text reports. 'Within 1 %' and "
        "'more than 20 %' are plotted as 1 % and 20 %.",
    )  # fmt: skip
    return figure
