"""Buddy Compression, Fig. 13: footprint, throughput and accuracy by minibatch, and speedup of a larger one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.figures.shared import study_style
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.papers.buddy.batch_accuracy import MINIBATCHES, about, curve
from buddysim.papers.buddy.case_study import BATCHES, MACHINE, NETWORKS, footprint_gib, larger_batch, samples_per_s
from buddysim.papers.buddy.means import arithmetic
from buddysim.papers.reported_values import reported_value
from buddysim.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Buddy Compression, Fig. 13: training on 12 GB by minibatch, and speedup of the larger minibatch that fits"
ORDER = 115
STUDY = True
OPTIONS = study_style.OPTIONS
WIDTH_IN = study_style.WIDTH_IN
COLUMNS = (
    "workload", "batch", "footprint_gib", "samples_per_s", "ratio", "largest_batch", "largest_batch_buddy",
    "speedup_percent", "paper_speedup_percent", "epoch", "accuracy_percent", "accuracy_least_percent",
    "accuracy_most_percent",
)  # fmt: skip
_REPORTED = {"biglstm": "buddy-biglstm-speedup", "vgg16": "buddy-vgg16-speedup"}
_MEAN, _TRAINED = "mean", "small network"
_NONE = (None,) * 4
_LINES = ("o-", "s--", "^-.", "D:", "v-", "P--")


def data(source: ResultSource) -> FigureTable:
    """Return rows by network and minibatch, speedups of larger minibatches with their mean, and accuracies.

    Accuracies are by minibatch and epoch of the trained network.
    """
    rows: list[tuple[Any, ...]] = []
    names = [name for name in source.buddy.names("DL") if name in NETWORKS]
    for name in names:
        for batch in BATCHES:
            sizes = footprint_gib(source.buddy, name, batch), samples_per_s(source.buddy, name, batch)
            rows.append((name, batch, *sizes, *_NONE, None, *_NONE))
    gains = {name: larger_batch(source.buddy, name) for name in names}
    for name, gain in gains.items():
        reported = reported_value(_REPORTED[name]) if name in _REPORTED else None
        rows.append((name, None, None, None, *(gain or _NONE), reported, *_NONE))
    known = [gain[3] for gain in gains.values() if gain is not None]
    rows.append((_MEAN, *_NONE, None, None, arithmetic(known), reported_value("buddy-dl-speedup"), *_NONE))
    for batch in MINIBATCHES:
        for epoch, accuracy in enumerate(curve(batch), 1):
            rows.append((_TRAINED, batch, *_NONE, None, None, None, epoch, *accuracy))
    return study_style.make_table(source.buddy, "fig13", COLUMNS, rows if names else [])


def draw(table: FigureTable) -> Figure:
    figure, axes = study_style.make_figure(TITLE, 4, 1, height=6.9)
    others = (_MEAN, _TRAINED)
    names = [name for name in dict.fromkeys(row["workload"] for row in table.records()) if name not in others]
    for n, name in enumerate(names):
        rows = [row for row in table.rows_with(workload=name) if row["batch"] is not None]
        x, shade = [row["batch"] for row in rows], str(round(0.12 * n, 2))
        usual: dict[str, Any] = {"color": shade, "markersize": 2, "linewidth": 0.8}
        axes[0].plot(
            x, [row["footprint_gib"] for row in rows], _LINES[n], label=study_style.paper_labels([name])[0], **usual
        )
        speeds = [row["samples_per_s"] for row in rows]
        axes[1].plot(x, [speed / speeds[0] for speed in speeds], _LINES[n], **usual)
    for panel in axes[:2]:
        panel.set_xscale("log", base=2)
        panel.set_xticks(x, [str(batch) for batch in x])
    axes[0].axhline(reported_value("buddy-fig13-memory"), color=style.INK, linewidth=0.6, linestyle="--")
    axes[0].set_yscale("log")
    axes[0].set_ylabel("a: footprint, GiB")
    axes[1].set_ylabel(f"b: throughput over\nthat at {x[0]}")
    axes[1].set_xlabel("minibatch")
    speedup_rows = [row for row in table.records() if row["batch"] is None]
    labels = study_style.paper_labels([row["workload"] for row in speedup_rows])
    (positions,) = study_style.draw_bars(
        axes[2], labels, {"simulated": [row["speedup_percent"] for row in speedup_rows]}
    )
    study_style.mark_reported_values(
        axes[2], positions, [row["paper_speedup_percent"] for row in speedup_rows], "paper (text)"
    )
    axes[2].axhline(0, color=style.INK, linewidth=0.5)
    axes[2].set_ylabel("c: speedup, %")
    _draw_accuracy(axes[3], table)
    study_style.add_legend(axes[0], 3)
    study_style.add_legend(axes[2], 2)
    study_style.add_legend(axes[3], 6)
    study_style.add_caption(
        figure, table,
        f"Modelled on {MACHINE}: a: everything on the GPU; b: the cost model; c: the largest minibatch that fits 12 GB "
        "times the ratio of the network's trace, less its slowdown at 150 GB/s; no bar: nothing fits 12 GB, or the "
        f"trace is missing. d: accuracy by minibatch, mean and range of the seeds: {about()}. The paper "
        "trains ResNet50 on CIFAR-100; its curves could not be read.",
    )  # fmt: skip
    return figure


def _draw_accuracy(axes: Axes, table: FigureTable) -> None:
    """Accuracy after each epoch, a line for each minibatch."""
    trained = table.rows_with(workload=_TRAINED)
    for n, batch in enumerate(dict.fromkeys(row["batch"] for row in trained)):
        rows, shade = [row for row in trained if row["batch"] == batch], str(round(0.12 * n, 2))
        epochs = [row["epoch"] for row in rows]
        least, most = ([row[f"accuracy_{end}_percent"] for row in rows] for end in ("least", "most"))
        axes.fill_between(epochs, least, most, color=shade, alpha=0.15, linewidth=0)
        means = [row["accuracy_percent"] for row in rows]
        axes.plot(epochs, means, _LINES[n], color=shade, markersize=2, linewidth=0.8, label=str(batch))
    axes.set_xlabel("epoch")
    axes.set_ylabel("d: accuracy, %")
