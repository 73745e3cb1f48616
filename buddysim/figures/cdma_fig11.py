"""cDMA, Fig. 11: average and largest ratio by algorithm and layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.compress.layouts import LAYOUTS
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cdma import density
from buddysim.papers.cdma.offloaded_maps import ratios_by_network
from buddysim.papers.cdma.paper_networks import NETWORKS
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style
from buddysim.training.contents.observed_activations import observed_activations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "cDMA, Fig. 11: compression ratios by compressor and layout (points: average by size; dashes: largest layer)"
ORDER = 211

LABELS = {"rle": "RL", "zvc": "ZV", "zlib": "ZL"}


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network, layout and algorithm; masks counted."""
    return [
        {
            "network": label,
            "algorithm": ratio.codec.algorithm,
            "layout": ratio.codec.layout,
            "average": ratio.average,
            "largest": ratio.largest,
        }
        for label, ratios in ratios_by_network(observed_activations(None)).items()
        for ratio in ratios
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(
        f"{TITLE}\n{density.caption()}, masks counted", 1, len(LAYOUTS), width=13, sharey=True
    )
    cells = {(row["network"], row["layout"], row["algorithm"]): row for row in rows}
    networks = list(NETWORKS)
    for panel, layout in zip(axes, LAYOUTS, strict=True):
        for series, (name, shown) in enumerate(LABELS.items()):
            positions = [x + (series - 1) * 0.8 / 3 for x in range(len(networks))]
            average, largest = ([cells[n, layout, name][kind] for n in networks] for kind in ("average", "largest"))
            colour = style.SERIES[series]
            panel.vlines(positions, average, largest, color=colour, lw=1)  # no bars: a logarithmic axis has no foot
            panel.plot(positions, average, "o", color=colour, ms=5, label=shown)
            panel.plot(positions, largest, "_", color=style.INK, ms=9)
        panel.set_xticks(range(len(networks)), networks)
        panel.set_yscale("log", base=2)
        panel.yaxis.set_major_formatter("{x:g}")
        panel.set_title(layout, fontsize=9, loc="left")
        style.draw_reported_line(panel, reported_value("zvc-average"), "paper: ZV on average 2.6")
        style.rotate_group_labels(panel, 8)
    style.draw_reported_line(axes[0], reported_value("zvc-largest"), "paper: ZV at most 13.8")
    axes[0].set_ylabel("compression ratio")
    style.add_legend(axes[0], 3)
    return figure
