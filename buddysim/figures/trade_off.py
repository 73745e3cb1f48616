"""Time and memory of every training scheme on one network, with the Pareto front.

``python -m buddysim plot trade-off --network vgg16 --batch 64``
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.figures.shared.result_source import ResultSource
from buddysim.plotting import style
from buddysim.training import schemes
from buddysim.training.search import LARGEST_BATCH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "training schemes: time and memory, and the Pareto front"
ORDER = 30
#: Options of the command for this figure.
OPTIONS = ("network", "batch", "machine")
_DEFAULTS = {"network": "vgg16", "batch": "64", "machine": "titan-x"}
_GIB = 2**30
_LABELS_ACROSS, _LABELS_UP = 8, 24  # labels that fit next to and above each other


@dataclass(frozen=True)
class TradeOffFigureData:
    """Data of the figure.

    Attributes
    ----------
    title : title of the figure
    capacity_gib : memory of the GPU
    rows : a dict for each scheme: its name, peak GiB, ms, whether it fits, and whether it is on the Pareto front: no
        scheme that fits is at least as good in both and better in one
    """

    title: str
    capacity_gib: float
    rows: list[dict[str, Any]]


def data(source: ResultSource) -> TradeOffFigureData:
    """Return a row for each scheme on a GPU with limited memory."""
    options = {**_DEFAULTS, **source.columns}
    if not options["batch"].isdecimal() or not 1 <= int(options["batch"]) <= LARGEST_BATCH:
        raise BuddysimError(f"--batch {shortened(options['batch'])}: expected an integer from 1 to {LARGEST_BATCH}")
    names = [
        name for name in schemes.runnable_schemes() if not getattr(schemes.REGISTRY.find(name), "UNLIMITED", False)
    ]
    network, batch, machine = options["network"], int(options["batch"]), options["machine"]
    results = source.training.training_results(network, batch, names, machine)
    rows = [
        {
            "scheme": name,
            "peak_gib": result["memory.peak_bytes"] / _GIB,
            "time_ms": result["time_ms"],
            "fits": result["fits"],
        }
        for name, result in results.items()
    ]
    for row in rows:
        row["on_the_front"] = row["fits"] and not any(_beats(other, row) for other in rows if other["fits"])
    capacity = next(iter(results.values()))["memory.capacity_bytes"] / _GIB
    return TradeOffFigureData(f"{network}, batch {batch}, on {machine}: time and memory", capacity, rows)


def _beats(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a scheme is at least as good in time and memory, and better in one of them."""
    amounts = [(one[key], other[key]) for key in ("peak_gib", "time_ms")]
    return all(a <= b for a, b in amounts) and any(a < b for a, b in amounts)


def draw(plotted: TradeOffFigureData) -> Figure:
    figure, axes = style.make_figure(plotted.title, height=6)
    front = sorted((row for row in plotted.rows if row["on_the_front"]), key=lambda row: row["peak_gib"])
    axes.step(
        [row["peak_gib"] for row in front], [row["time_ms"] for row in front], where="post", color=style.SERIES[2],
        lw=1, label="Pareto front of schemes that fit",
    )  # fmt: skip
    for fits, colour, label in ((True, style.SERIES[0], "fits"), (False, style.PALE, "does not fit")):
        points = [(row["peak_gib"], row["time_ms"]) for row in plotted.rows if row["fits"] is fits]
        if points:
            axes.scatter(*zip(*points, strict=True), s=16, color=colour, label=label, zorder=3)
    for point, names in _group_overlapping(plotted.rows):
        text = textwrap.fill(", ".join(names), 36)
        axes.annotate(text, point, (3, 2), textcoords="offset points", fontsize=6, color=style.INK, va="bottom")
    axes.axvline(plotted.capacity_gib, color=style.PALE, linewidth=0.8, linestyle="--", label="GPU memory")
    axes.set_xlabel("peak memory, GiB")
    axes.set_ylabel("iteration time, ms")
    style.add_legend(axes, 4)
    return figure


def _group_overlapping(rows: list[dict[str, Any]]) -> list[tuple[tuple[float, float], list[str]]]:
    """Group the names of schemes whose labels would overlap."""
    max_values = {key: max(row[key] for row in rows) for key in ("peak_gib", "time_ms")}
    groups: dict[tuple[int, int], tuple[tuple[float, float], list[str]]] = {}
    for row in rows:
        across, up = row["peak_gib"] / max_values["peak_gib"], row["time_ms"] / max_values["time_ms"]
        cell = round(_LABELS_ACROSS * across), round(_LABELS_UP * up)
        groups.setdefault(cell, ((row["peak_gib"], row["time_ms"]), []))[1].append(row["scheme"])
    return list(groups.values())
