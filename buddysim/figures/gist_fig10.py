"""Gist, Fig. 10: lossless encodings one by one, stashed feature maps without shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.gist.mfr import parts_gib
from buddysim.papers.gist.paper_networks import NETWORKS, mfr
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 10: lossless encodings one by one, stashed feature maps without shared memory"
ORDER = 310

SCHEMES = {
    "gist-base": "-",
    "gist-ssdc": "S",
    "gist-binarize": "B",
    "gist-ssdc-binarize": "S+B",
    "gist-lossless": "S+B+I",
}


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network and scheme; GiB by part, and the MFR."""
    return [
        {
            "network": label,
            "scheme": scheme,
            "gib": parts_gib(label, scheme),
            "mfr": mfr(label, scheme, "investigation"),
        }
        for label in NETWORKS
        for scheme in SCHEMES
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    networks = list(dict.fromkeys(row["network"] for row in rows))
    figure, axes = style.make_figure(TITLE, 1, len(networks), width=13)
    for panel, network in zip(axes, networks, strict=True):
        bars = [row for row in rows if row["network"] == network]
        parts = {part: [row["gib"][part] for row in bars] for part in bars[0]["gib"]}
        heights = style.draw_stacked_bars(panel, list(SCHEMES.values()), parts)
        for n, (row, height) in enumerate(zip(bars, heights, strict=True)):
            panel.annotate(
                f"{row['mfr']:.2f}", (n, height), (0, 2), textcoords="offset points", ha="center", fontsize=7
            )
        panel.set_title(network, fontsize=9)
    axes[0].set_ylabel("memory, GiB (above: MFR)")
    for panel in axes:
        panel.tick_params(axis="x", labelsize=6)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=8, frameon=False)
    return figure
