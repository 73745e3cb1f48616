"""CSWAP, Fig. 8: layers that are compressed, over a training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cswap.advisor_decisions import compressed
from buddysim.papers.cswap.iterations import SOURCES, training_text
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "CSWAP, Fig. 8: layers with compressed feature maps, over buddysim's training (V100, ImageNet)"
ORDER = 408

NETWORKS = ("AlexNet", "VGG16", "MobileNet", "SqueezeNet")


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network, source of codec times and epoch."""
    return [
        {"network": label, "codec_times": name, "epoch": epoch, "layers": len(layers)}
        for label in NETWORKS
        for name in SOURCES
        for epoch, layers in compressed(label, name).items()
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, 1, len(NETWORKS), width=13)
    for panel, label in zip(axes, NETWORKS, strict=True):
        for name in SOURCES:
            own = [row for row in rows if (row["network"], row["codec_times"]) == (label, name)]
            panel.plot([r["epoch"] for r in own], [r["layers"] for r in own], marker=".", linewidth=1, label=name)
        panel.set_title(label, fontsize=9, loc="left")
        panel.set_ylim(0)
        panel.set_xlabel("epoch")
    axes[0].set_ylabel("compressed layers")
    axes[0].legend(fontsize=7, frameon=False, title="codec times", title_fontsize=7)
    style.add_caption(axes[0], training_text(*NETWORKS))
    return figure
