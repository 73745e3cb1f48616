"""Gist, Fig. 1: memory by purpose, minibatch 64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.gist.mfr import immediate, stashed
from buddysim.papers.gist.paper_networks import GIB, NETWORKS, run
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 1: memory by purpose, minibatch 64"
ORDER = 301


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network; GiB by kind, stashed feature maps without shared memory."""
    rows = []
    for label in NETWORKS:
        outcome = run(label, "gist-base", "investigation")
        stashed_bytes, passing = sum(stashed(outcome).values()), immediate(outcome)
        weights = outcome.network.parameter_bytes()
        kinds = {
            "weights": weights, "weight gradients": weights, "stashed feature maps": stashed_bytes,
            "consumed immediately": passing,
            "masks": outcome.footprint_bytes - stashed_bytes - passing,
        }  # fmt: skip
        rows.append({"network": label, "gib": {kind: count / GIB for kind, count in kinds.items()}})
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE)
    kinds, labels = list(rows[0]["gib"]), [row["network"] for row in rows]
    heights = style.draw_stacked_bars(axes, labels, {kind: [row["gib"][kind] for row in rows] for kind in kinds})
    reported = {"VGG16": reported_value("share-vgg16"), "Inception": reported_value("share-inception")}
    for n, (row, height) in enumerate(zip(rows, heights, strict=True)):
        percent = 100 * (row["gib"]["stashed feature maps"] + row["gib"]["consumed immediately"]) / height
        paper = f" (paper: {reported[labels[n]]:.0f})" if labels[n] in reported else ""
        axes.annotate(
            f"{percent:.0f} %{paper}", (n, height), (0, 2), textcoords="offset points", ha="center", fontsize=8
        )
    axes.set_ylabel("memory, GiB (above: % feature maps)")
    style.add_legend(axes, 5)
    return figure
