"""CSWAP's throughput over vDNN++'s, by the unpublished codec rate of a host thread."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.cswap.iterations import result, training_text
from buddysim.papers.cswap.paper_networks import CSWAP, HOST, NETWORKS
from buddysim.papers.cswap.performance_numbers import PANELS
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style
from buddysim.training.schemes.vdnnpp import OPTIONS, THREADS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "CSWAP: speedup over vDNN++ by codec rate of each of 64 host threads (V100, CIFAR-10)"
ORDER = 413

#: GB/s of a thread: zlib's slowest levels to LZ4's decoder.
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
PANEL = "6a"


def data(source: ResultSource) -> list[dict[str, Any]]:
    """Return a row for each rate and network: CSWAP's throughput above vDNN++'s, in per cent, and the time saved."""
    rows = []
    for label in NETWORKS:
        cswap_ms = result(source.training, PANELS[PANEL], label, CSWAP)["time_ms"]
        for rate in RATES:
            host_ms = result(source.training, PANELS[PANEL], label, HOST, host_codec_rate=rate)["time_ms"]
            rows.append(
                {
                    "network": label,
                    "rate": rate,
                    "percent": 100 * (host_ms / cswap_ms - 1),
                    "saved_ms": host_ms - cswap_ms,
                }
            )
    return rows


def draw(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = style.make_figure(TITLE)
    for label in NETWORKS:
        own = [row for row in rows if row["network"] == label]
        axes.plot([r["rate"] for r in own], [r["percent"] for r in own], marker=".", linewidth=1, label=label)
    mean = [fmean(row["percent"] for row in rows if row["rate"] == rate) for rate in RATES]
    axes.plot(RATES, mean, color=style.INK, linewidth=2, label="average")
    axes.axvline(OPTIONS["host_codec_rate"].default, color=style.PALE, linewidth=0.8)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=f"codec rate of each of {THREADS} host threads, GB/s",
        ylabel="speedup - 1, %",
    )
    style.draw_reported_line(axes, float(reported_value("6a-gain-vdnnpp")), "paper: average")
    style.add_legend(axes, 4)
    style.add_caption(axes, f"{training_text()}. Grey: the default rate (assumed).")
    return figure
