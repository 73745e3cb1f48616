"""Gist, Fig. 11: compression ratios of lossless encodings on their feature maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.gist.mfr import binarize_ratios, inplace_ratios, ssdc_ratios
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Gist, Fig. 11: compression ratios of lossless encodings on their feature maps"
ORDER = 311


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network; compression ratios of the feature maps of each encoding."""
    by_encoding = {"Binarize": binarize_ratios(), "SSDC": ssdc_ratios(), "in place": inplace_ratios()}
    networks = by_encoding["Binarize"]
    return [{"network": label, **{name: ratios[label] for name, ratios in by_encoding.items()}} for label in networks]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(f"{TITLE} (62 % zeros)")
    labels = [row["network"] for row in rows]
    kinds = ("Binarize", "SSDC", "in place")
    style.draw_grouped_bars(axes, labels, {kind: [row[kind] for row in rows] for kind in kinds}, "{:.1f}")
    overfeat, alexnet = labels.index("OverFeat"), labels.index("AlexNet")
    values = [reported_value("ssdc-target-overfeat"), reported_value("inplace-target-alexnet")]
    style.mark_reported_values(axes, [overfeat, alexnet + 0.27], values, "paper: SSDC, in place")
    style.draw_reported_line(axes, reported_value("binarize-target"), "paper: Binarize, close to")
    axes.set_ylabel("compression ratio")
    style.add_legend(axes, 4)
    return figure
