"""Buddy Compression, Fig. 9: ratio and buddy accesses against the Buddy Threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.buddy.buddy_study import paper_names
from buddysim.papers.buddy.digitized_figures import THRESHOLDS, figures
from buddysim.papers.buddy.means import arithmetic, geometric
from buddysim.papers.buddy.target_numbers import threshold_ratio, thresholds
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Buddy Compression, Fig. 9: compression ratio and overflow by Buddy Threshold"
ORDER = 111
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN
_BEST = "best_achievable"
COLUMNS = ("workload", "group", "threshold", "ratio", "overflow_fraction", "paper_ratio")


def data(source: ResultSource) -> FigureTable:
    """Return a row for each workload and threshold, then the means of the stored results."""
    rows: list[tuple[Any, ...]] = []
    reported = figures()["fig9_ratio_by_buddy_threshold"]
    for group in ("HPC", "DL"):
        of_group = []
        for name in source.buddy.names(group):
            by_threshold = thresholds(source.buddy, name)
            for key in THRESHOLDS if by_threshold is not None else ():
                overflow_fraction = (
                    None if by_threshold is None or key == _BEST else by_threshold[key]["overflow_fraction"]
                )
                ratio = threshold_ratio(source.buddy, name, key)
                of_group.append((name, group, key, ratio, overflow_fraction, reported[paper_names()[name]][key]))
        for key in THRESHOLDS if of_group else ():
            threshold_rows = [row for row in of_group if row[2] == key]
            means = geometric(row[3] for row in threshold_rows), arithmetic(row[4] for row in threshold_rows)
            of_group.append((study_style.MEANS[group], group, key, *means, reported[f"GMEAN_{group}"][key]))
        rows += of_group
    return study_style.make_table(source.buddy, "fig9", COLUMNS, rows)


def draw(table: FigureTable) -> Figure:
    figure, (above, below) = study_style.make_figure(TITLE, 2, 1, height=3.6, sharex=True)
    names = list(dict.fromkeys(row["workload"] for row in table.records()))
    labels = study_style.paper_labels(names)
    keys = [key for key in THRESHOLDS if key != _BEST]
    texts = [f"{THRESHOLDS[key]:.0%}" for key in keys]
    ratios = [[row["ratio"] for row in table.rows_with(threshold=key)] for key in keys]
    positions = study_style.draw_bars(above, labels, dict(zip(texts, ratios, strict=True)))
    for n, key in enumerate(keys):
        study_style.mark_reported_values(
            above, positions[n], [row["paper_ratio"] for row in table.rows_with(threshold=key)], None if n else "paper"
        )
    best = [row["ratio"] for row in table.rows_with(threshold=_BEST)]
    known = [(at, ratio) for at, ratio in enumerate(best) if ratio is not None]
    above.scatter(
        [at for at, _ in known], [ratio for _, ratio in known], marker="_", s=40, color="black", linewidth=1.2,
        zorder=6, label="best achievable",
    )  # fmt: skip
    percents = [
        [
            None if row["overflow_fraction"] is None else 100 * row["overflow_fraction"]
            for row in table.rows_with(threshold=key)
        ]
        for key in keys
    ]
    study_style.draw_bars(below, labels, dict(zip(texts, percents, strict=True)))
    above.axhline(1, color=style.PALE, linewidth=0.6, linestyle="--")
    above.set_ylabel("compression ratio")
    below.set_ylabel("overflow, % of entries")
    study_style.add_legend(above, 3)
    study_style.add_caption(
        figure, table,
        "Captured data values; the threshold holds in the worst of ten snapshots; best achievable: every entry takes "
        "the sectors that it needs (the paper's is in the CSV file).", study_style.INPUTS,
        study_style.workload_counts_text(table),
    )  # fmt: skip
    return figure
