"""CSWAP, Fig. 1: sparsity of VGG16's swapped feature maps over a training, and their sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cswap.iterations import decisions, epochs, training_text
from buddysim.papers.cswap.paper_networks import TENSORS
from buddysim.papers.cswap.tensor_numbers import VGG16
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "CSWAP, Fig. 1: sparsity of VGG16 (128)'s swapped feature maps over buddysim's training, and their sizes"
ORDER = 401


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each feature map and epoch."""
    return [
        {
            "tensor": TENSORS[one.layer.name],
            "epoch": epoch,
            "sparsity": one.sparsity,
            "mib": one.byte_count / 2**20,
        }
        for epoch in epochs("VGG16")
        for one in decisions(*VGG16, epoch=epoch)
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, width=11)
    names = list(dict.fromkeys(row["tensor"] for row in rows))
    series: dict[str, list[float | None]] = {}
    for row in rows:
        series.setdefault(f"epoch {row['epoch']:.2g}", []).append(100 * row["sparsity"])
    style.draw_grouped_bars(axes, names, series)
    axes.set_ylabel("sparsity, %")
    axes.set_ylim(0, 100)
    right = axes.twinx()
    sizes = {row["tensor"]: row["mib"] for row in rows}
    right.plot(range(len(names)), [sizes[name] for name in names], color=style.INK, marker="o", linewidth=1)
    right.set_ylabel("size, MiB", fontsize=9)
    style.mark_reported_values(
        right, [0, len(names) - 1], [1568, 49], "paper", "Red marks: sizes that the paper reports."
    )
    style.add_legend(axes, 5)
    style.add_caption(axes, training_text("VGG16"))
    return figure
