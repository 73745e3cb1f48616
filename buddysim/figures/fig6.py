"""Buddy Compression, Fig. 6: where compressible entries lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Buddy Compression, Fig. 6: size of each entry; a row for each page of 8 KB, by address"
ORDER = 108
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN
ROWS = 256
_ENTRIES = 64
_ACROSS = 4


def data(source: ResultSource) -> FigureTable:
    """Up to `ROWS` rows for each workload: the mean size of an entry over the pages that a row stands for."""
    rows = []
    for name in source.buddy.names():
        pages = source.buddy.analysis_rows(name, "page-classes")
        if not pages:
            continue
        sizes = np.array([[page[f"entry{n}_bytes"] for n in range(_ENTRIES)] for page in pages], dtype=np.float64)
        for number, part in enumerate(np.array_split(sizes, min(ROWS, len(sizes)))):
            known = ~np.isnan(part)
            sums = np.where(known, part, 0).sum(0)
            mean = [float(total / count) if count else None for total, count in zip(sums, known.sum(0), strict=True)]
            rows.append((name, number, len(pages), *mean))
    columns = ("workload", "row", "pages", *(f"entry{n}_bytes" for n in range(_ENTRIES)))
    return study_style.make_table(source.buddy, "fig6", columns, rows)


def draw(table: FigureTable) -> Figure:
    names = list(dict.fromkeys(row[0] for row in table.rows))
    down = -(-len(names) // _ACROSS)
    figure, axes = study_style.make_figure(
        TITLE, down, min(_ACROSS, len(names)), height=1.0 + 1.1 * down, squeeze=False
    )
    for panel, name in zip(axes.flat, names, strict=False):
        sizes = np.array([row[3:] for row in table.rows if row[0] == name], dtype=np.float64)
        image = panel.imshow(
            sizes, aspect="auto", cmap="cividis", vmin=0, vmax=128, interpolation="nearest", rasterized=True
        )
        pages = next(row[2] for row in table.rows if row[0] == name)
        panel.set_title(f"{study_style.paper_labels([name])[0]}\n{pages:,} pages", fontsize=5, pad=2)
        panel.set_xticks([])
        panel.set_yticks([])
    for panel in axes.flat[len(names) :]:
        panel.set_visible(False)
    bar = figure.colorbar(image, ax=axes, shrink=0.5, aspect=30)
    bar.set_label("entry size, B", fontsize=6)
    bar.ax.tick_params(labelsize=6)
    study_style.add_caption(
        figure, table,
        "Captured data values: entry sizes by bpc halfway through the run; from left to right the 64 entries of a "
        f"page; of more than {ROWS} "
        "pages a row is the mean of neighbours. Dark: compressible. White: not known.",
    )  # fmt: skip
    return figure
