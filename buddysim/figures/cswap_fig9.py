"""CSWAP, Fig. 9: which of VGG16's layers are compressed, over a training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cswap.advisor_decisions import compressed
from buddysim.papers.cswap.iterations import SOURCES, training_text
from buddysim.papers.cswap.paper_networks import TENSORS
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "CSWAP, Fig. 9: compressed feature maps of VGG16 (128), over buddysim's training (V100)"
ORDER = 409


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each source of codec times, epoch and feature map."""
    return [
        {"codec_times": name, "epoch": epoch, "tensor": label, "compressed": layer in layers}
        for name in SOURCES
        for epoch, layers in compressed("VGG16", name).items()
        for layer, label in TENSORS.items()
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, 1, 2, width=11, sharey=True)
    labels = list(TENSORS.values())
    for panel, name in zip(axes, SOURCES, strict=True):
        own = [row for row in rows if row["codec_times"] == name]
        shown_epochs = list(dict.fromkeys(row["epoch"] for row in own))
        for is_compressed, colour in ((True, style.INK), (False, "white")):
            dots = [row for row in own if row["compressed"] is is_compressed]
            panel.scatter(
                [shown_epochs.index(row["epoch"]) for row in dots], [labels.index(row["tensor"]) for row in dots],
                facecolor=colour, edgecolor=style.INK, label="compressed" if is_compressed else "raw",
            )  # fmt: skip
        panel.set_xticks(range(len(shown_epochs)), [f"{epoch:.2g}" for epoch in shown_epochs])
        panel.set_title(f"codec times: {name}", fontsize=9, loc="left")
        panel.set_xlabel("epoch")
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].invert_yaxis()
    style.add_legend(axes[1], 2)
    style.add_caption(axes[0], training_text("VGG16"))
    return figure
