"""vDNN, Fig. 15: very deep networks: what lies on the GPU and in the host."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from buddysim.figures import style
from buddysim.figures.paper import DEEP, GIB, value
from buddysim.figures.runs import Runs

TITLE = "vDNN, Fig. 15: memory of very deep networks (batch 32), baseline and dyn"

NETWORKS = (("VGG-16 (32)", "vgg19", 32), *DEEP)


def data(runs: Runs) -> list[dict[str, Any]]:
    """A row for each network; GiB, and dyn's time over the oracle's."""
    rows = []
    for label, name, batch in NETWORKS:
        result = runs.one(name, batch, "vdnn-dyn")
        rows.append(
            {
                "network": label,
                "baseline_gib": result["memory.baseline_bytes"] / GIB,
                "gpu_gib": result["memory.peak_bytes"] / GIB,
                "host_gib": result["host.pinned_bytes"] / GIB,
                "time": result["features.time_ms"] / result["features.oracle_ms"],
            }
        )
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.figure(TITLE)
    labels = [row["network"] for row in rows]
    places = range(len(rows))
    axes.bar([x - 0.2 for x in places], [row["baseline_gib"] for row in rows], 0.36, color=style.PALE, label="baseline")
    gpu = [row["gpu_gib"] for row in rows]
    axes.bar([x + 0.2 for x in places], gpu, 0.36, color=style.SERIES[0], label="dyn, GPU at most")
    host = [row["host_gib"] for row in rows]
    axes.bar([x + 0.2 for x in places], host, 0.36, bottom=gpu, color=style.SERIES[1], label="dyn, host")
    for x, row in enumerate(rows):
        axes.annotate(
            f"time x {row['time']:.2f}", (x + 0.2, row["gpu_gib"] + row["host_gib"]), (0, 2),
            textcoords="offset points", ha="center", fontsize=7,
        )  # fmt: skip
    style.stated(axes, [-0.2, len(rows) - 1.2], [value("total-vgg16-32"), value("total-vgg416-32")])
    style.stated_line(axes, value("deep-gpu"), "paper: at most 4.2 GB on the GPU")
    axes.set_xticks(places, labels)
    axes.set_ylabel("GiB")
    style.legend(axes, 4)
    return figure
