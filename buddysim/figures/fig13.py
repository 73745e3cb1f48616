"""Buddy Compression, Fig. 13: footprint and speed of training against the minibatch, and what a larger one gains."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from buddysim.figures.drawing import study, style
from buddysim.figures.drawing.source import Source
from buddysim.figures.drawing.table import Table
from buddysim.papers.buddy.case_study import BATCHES, MACHINE, NETWORKS, footprint_gib, larger_batch, samples_per_s
from buddysim.papers.buddy.means import arithmetic
from buddysim.papers.stated import value

TITLE = "Buddy Compression, Fig. 13: training on 12 GB against the minibatch, and the larger one that fits"
ORDER = 115
STUDY = True
OPTIONS = study.OPTIONS
WIDTH_IN = study.WIDTH_IN
COLUMNS = (
    "workload", "batch", "footprint_gib", "samples_per_s", "ratio", "largest_batch", "largest_batch_buddy",
    "speedup_percent", "paper_speedup_percent",
)  # fmt: skip
_STATED = {"biglstm": "buddy-biglstm-speedup", "vgg16": "buddy-vgg16-speedup"}
_MEAN = "mean"
_LINES = ("o-", "s--", "^-.", "D:", "v-", "P--")


def data(source: Source) -> Table:
    """A row for each network and minibatch; then one of each network with its larger minibatch, and their mean."""
    rows: list[tuple[Any, ...]] = []
    names = [name for name in source.buddy.names("DL") if name in NETWORKS]
    for name in names:
        for batch in BATCHES:
            sizes = footprint_gib(source.buddy, name, batch), samples_per_s(source.buddy, name, batch)
            rows.append((name, batch, *sizes, None, None, None, None, None))
    gains = {name: larger_batch(source.buddy, name) for name in names}
    for name, gain in gains.items():
        theirs = value(_STATED[name]) if name in _STATED else None
        rows.append((name, None, None, None, *(gain or (None,) * 4), theirs))
    known = [gain[3] for gain in gains.values() if gain is not None]
    rows.append((_MEAN, None, None, None, None, None, None, arithmetic(known), value("buddy-dl-speedup")))
    return study.made(source.buddy, "fig13", COLUMNS, rows if names else [])


def draw(table: Table) -> Figure:
    drawn, axes = study.figure(TITLE, 3, 1, height=5.2)
    names = [name for name in dict.fromkeys(row["workload"] for row in table.records()) if name != _MEAN]
    for n, name in enumerate(names):
        rows = [row for row in table.of(workload=name) if row["batch"] is not None]
        x, shade = [row["batch"] for row in rows], str(round(0.12 * n, 2))
        usual: dict[str, Any] = {"color": shade, "markersize": 2, "linewidth": 0.8}
        axes[0].plot(x, [row["footprint_gib"] for row in rows], _LINES[n], label=study.labels([name])[0], **usual)
        speeds = [row["samples_per_s"] for row in rows]
        axes[1].plot(x, [speed / speeds[0] for speed in speeds], _LINES[n], **usual)
    for panel in axes[:2]:
        panel.set_xscale("log", base=2)
        panel.set_xticks(x, [str(batch) for batch in x])
    axes[0].axhline(value("buddy-fig13-memory"), color=style.INK, linewidth=0.6, linestyle="--")
    axes[0].set_yscale("log")
    axes[0].set_ylabel("a: footprint, GiB")
    axes[1].set_ylabel(f"b: samples/s over\nthose at {x[0]}")
    axes[1].set_xlabel("minibatch")
    chosen = [row for row in table.records() if row["batch"] is None]
    labels = study.labels([row["workload"] for row in chosen])
    (places,) = study.bars(axes[2], labels, {"ours": [row["speedup_percent"] for row in chosen]})
    study.marks(axes[2], places, [row["paper_speedup_percent"] for row in chosen], "paper (text)")
    axes[2].axhline(0, color=style.INK, linewidth=0.5)
    axes[2].set_ylabel("c: speed-up, %")
    study.legend(axes[0], 3)
    study.legend(axes[2], 2)
    study.caption(
        drawn, table,
        f"Modelled on {MACHINE}: a: everything on the GPU; b: the cost model; c: the largest minibatch that fits 12 GB "
        "times the ratio of the network's trace, less its slowdown at 150 GB/s; no bar: nothing fits 12 GB, or the "
        "trace isn't there. d, accuracy against the minibatch, isn't trained here.",
    )  # fmt: skip
    return drawn
