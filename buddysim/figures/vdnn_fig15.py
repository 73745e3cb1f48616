"""vDNN, Fig. 15: memory of very deep networks on the GPU and in the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.reported_values import reported_value
from buddysim.papers.vdnn.memory_numbers import gpu_bytes
from buddysim.papers.vdnn.paper_networks import DEEP, GIB
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "vDNN, Fig. 15: memory of very deep networks (batch 32), baseline and dyn"
ORDER = 115

NETWORKS = (("VGG-16 (32)", "vgg19", 32), *DEEP)


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each network; GiB, and dyn's time over the oracle's."""
    rows = []
    for label, name, batch in NETWORKS:
        result = source.training.result(name, batch, "vdnn-dyn")
        rows.append(
            {
                "network": label,
                "baseline_gib": result["memory.baseline_bytes"] / GIB,
                "gpu_gib": gpu_bytes(result) / GIB,
                "gpu_with_gradients_gib": result["memory.peak_bytes"] / GIB,
                "offloaded": bool(result["offload.bytes"]),
                "host_gib": result["host.peak_pinned_bytes"] / GIB,
                "time": result["feature_layers.time_ms"] / result["feature_layers.oracle_ms"],
            }
        )
    return rows


def explanation(rows: list[dict[str, Any]]) -> str:
    """Return the reason why bars exceed the paper's line."""
    on_device = [row["network"] for row in rows if not row["offloaded"]]
    last = rows[-1]
    fits = f" {' and '.join(on_device)} fits the GPU, so dyn offloads nothing of it: the line isn't about it."
    return (
        f"GPU memory at the iteration's peak, weights counted once: {last['gpu_gib']:.2f} GiB of {last['network']}, "
        f"where the paper reports {reported_value('deep-gpu'):.1f} for VGG-116 to VGG-416; with the weights' "
        f"gradients, which are there at the same time, {last['gpu_with_gradients_gib']:.2f}.{fits if on_device else ''}"
    )


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE)
    labels = [row["network"] for row in rows]
    positions = range(len(rows))
    axes.bar(
        [x - 0.2 for x in positions], [row["baseline_gib"] for row in rows], 0.36, color=style.PALE, label="baseline"
    )
    gpu = [row["gpu_gib"] for row in rows]
    axes.bar([x + 0.2 for x in positions], gpu, 0.36, color=style.SERIES[0], label="dyn, GPU peak")
    host = [row["host_gib"] for row in rows]
    axes.bar([x + 0.2 for x in positions], host, 0.36, bottom=gpu, color=style.SERIES[1], label="dyn, pinned host")
    for x, row in enumerate(rows):
        axes.annotate(
            f"time x {row['time']:.2f}", (x + 0.2, row["gpu_gib"] + row["host_gib"]), (0, 2),
            textcoords="offset points", ha="center", fontsize=7,
        )  # fmt: skip
    style.mark_reported_values(
        axes, [-0.2, len(rows) - 1.2], [reported_value("total-vgg16-32"), reported_value("total-vgg416-32")]
    )
    style.draw_reported_line(axes, reported_value("deep-gpu"), "paper: at most 4.2 GB on the GPU")
    style.add_caption(axes, explanation(rows))
    axes.set_xticks(positions, labels)
    axes.set_ylabel("memory, GiB")
    style.add_legend(axes, 4)
    return figure
