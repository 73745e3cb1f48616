"""Buddy Compression, Fig. 5b: hit rate of the metadata cache against its size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.buddy.performance_numbers import KIB, hit_rates
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Buddy Compression, Fig. 5b: hit rate of the metadata cache by its size"
ORDER = 107
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN
LINES = (32, 128)
_NAMED = 4
_STYLES = ("o-", "s--", "^-.", "D:")


def data(source: ResultSource) -> FigureTable:
    """Return a row for each workload, line and size."""
    rows = []
    for name in source.buddy.names():
        for line in LINES:
            rates = hit_rates(source.buddy, name, line)
            rows += [(name, line, size, rate) for size, rate in (rates or {}).items()]
    columns = ("workload", "line_bytes", "bytes_per_slice", "hit_fraction")
    return study_style.make_table(source.buddy, "fig5-metadata", columns, rows)


def draw(table: FigureTable) -> Figure:
    figure, axes = study_style.make_figure(TITLE, 1, len(LINES), sharey=True)
    for panel, line in zip(axes, LINES, strict=True):
        names = list(dict.fromkeys(row["workload"] for row in table.rows_with(line_bytes=line)))
        rates = {
            name: [row["hit_fraction"] for row in table.rows_with(line_bytes=line, workload=name)] for name in names
        }
        lowest = sorted(names, key=lambda name: rates[name][2] if rates[name][2] is not None else 1)[:_NAMED]
        for name in [*(name for name in names if name not in lowest), *lowest]:
            x = [row["bytes_per_slice"] / KIB for row in table.rows_with(line_bytes=line, workload=name)]
            if name in lowest:
                n = lowest.index(name)
                panel.plot(
                    x, rates[name], _STYLES[n], color=str(0.15 * n), markersize=2, linewidth=0.9,
                    label=study_style.paper_labels([name])[0],
                )  # fmt: skip
            else:
                panel.plot(x, rates[name], "-", color=style.PALE, linewidth=0.5)
        panel.set_xscale("log", base=2)
        panel.set_xticks(x, [f"{size:g}" for size in x])
        panel.set_title(f"lines of {line} B", fontsize=6, pad=2)
        panel.set_ylim(0, 1.02)
        panel.set_xlabel("metadata cache, KiB per slice")
        panel.legend(fontsize=5, frameon=False, loc="lower right")
    axes[0].set_ylabel("hit rate")
    study_style.add_caption(
        figure, table,
        "KB per slice, of 32 slices. Modelled: replays of a step; named: the lowest at 4 KB; pale: the others. The "
        "paper's curves could not be read; it says that most are high.", study_style.INPUTS,
    )  # fmt: skip
    return figure
