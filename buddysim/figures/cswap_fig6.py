"""CSWAP, Fig. 6: throughput of six networks over vDNN's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cswap.iterations import SOURCES, normalised, training_text
from buddysim.papers.cswap.paper_networks import CASES, NETWORKS
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "CSWAP, Fig. 6: speedup over vDNN (conv, fastest algorithms)"
ORDER = 406


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each panel, source of codec times, scheme and network."""
    return [
        {"panel": case.panel, "machine": case.machine, "dataset": case.dataset, "codec_times": name,
         "scheme": scheme, "network": label, "throughput": value}
        for case in CASES
        for name in SOURCES
        for scheme, speedups in normalised(source.training, case, name).items()
        for label, value in speedups.items()
    ]  # fmt: skip


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, 2, 2, width=13, height=7)
    reached = {(r["panel"], r["codec_times"], r["scheme"], r["network"]): r["throughput"] for r in rows}
    for panel, case in zip(axes.flat, CASES, strict=True):
        series = {
            f"{scheme}{', paper' if name == SOURCES[1] else ''}": [
                reached.get((case.panel, name, scheme, label)) for label in NETWORKS
            ]
            for scheme in dict.fromkeys(row["scheme"] for row in rows)
            for name in (SOURCES if scheme in ("cswap", "cswap-static") else SOURCES[:1])
        }
        style.draw_grouped_bars(panel, list(NETWORKS), series)
        panel.set_title(f"{case.panel}: {case.dataset}, {case.machine}", fontsize=9, loc="left")
        for x in range(len(NETWORKS)):
            if all(values[x] is None for values in series.values()):
                panel.annotate("does not train", (x, 0), (0, 4), textcoords="offset points", ha="center", fontsize=7)
        panel.axhline(1, color=style.PALE, linewidth=0.8)
    style.add_legend(axes[0][1], 5)
    axes[0][0].set_ylabel("speedup over vDNN")
    style.add_caption(
        axes[0][0], f"{training_text()}; 'paper': codec times through three points of the paper's Fig. 5."
    )
    return figure
