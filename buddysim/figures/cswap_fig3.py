"""CSWAP, Fig. 3: VGG16's copies without compression, and with static compression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cswap.advisor_decisions import swapping_ms
from buddysim.papers.cswap.iterations import SOURCES, training_text
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "CSWAP, Fig. 3: swapping time of VGG16 (128) on a V100, without and with static compression"
ORDER = 403


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each source of codec times and each feature map; milliseconds, nothing overlapped."""
    return [
        {"codec_times": name, "tensor": tensor, "plain_ms": plain, "copies_ms": copies, "codec_ms": codec}
        for name in SOURCES
        for tensor, (plain, copies, codec) in swapping_ms(name).items()
    ]


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE, 1, 2, width=13, sharey=True)
    for panel, name in zip(axes, SOURCES, strict=True):
        own = [row for row in rows if row["codec_times"] == name]
        positions = range(len(own))
        panel.bar([x - 0.2 for x in positions], [r["plain_ms"] for r in own], 0.38, label="copies, raw")
        copies = [row["copies_ms"] for row in own]
        panel.bar([x + 0.2 for x in positions], copies, 0.38, label="copies, compressed")
        panel.bar([x + 0.2 for x in positions], [r["codec_ms"] for r in own], 0.38, bottom=copies, label="codec")
        panel.set_xticks(positions, [row["tensor"] for row in own])
        panel.set_title(f"codec times: {name}", fontsize=9, loc="left")
        style.rotate_group_labels(panel)
    axes[0].set_ylabel("time of offload and prefetch, ms")
    style.add_legend(axes[1], 3)
    style.add_caption(axes[0], training_text("VGG16"))
    return figure
