"""Time against memory of every training scheme on one network, with those that nothing beats in both.

``python -m buddysim plot trade-off --network vgg16 --batch 64``
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.figures.shared.result_source import ResultSource
from buddysim.plotting import style
from buddysim.training import schemes
from buddysim.training.search import LARGEST_BATCH

TITLE = "every training scheme: time against memory, and the Pareto front"
ORDER = 30
#: Options of the command that it takes.
OPTIONS = ("network", "batch", "machine")
_DEFAULTS = {"network": "vgg16", "batch": "64", "machine": "titan-x"}
_GIB = 2**30
_PLACES_ACROSS, _PLACES_UP = 8, 24  # labels that fit beside and above each other


@dataclass(frozen=True)
class TradeOffFigureData:
    """What is drawn.

    Attributes
    ----------
    title : of the picture
    capacity_gib : of the GPU
    rows : a dict for each scheme: its name, GiB at the peak, ms, whether it fits, and whether no other scheme that fits
        takes less of one without more of the other
    """

    title: str
    capacity_gib: float
    rows: list[dict[str, Any]]


def data(source: ResultSource) -> TradeOffFigureData:
    """A row for each scheme on a GPU with a bounded memory."""
    chosen = {**_DEFAULTS, **source.columns}
    if not chosen["batch"].isdecimal() or not 1 <= int(chosen["batch"]) <= LARGEST_BATCH:
        raise BuddysimError(f"--batch {shortened(chosen['batch'])}: expected a whole number from 1 to {LARGEST_BATCH}")
    names = [
        name for name in schemes.runnable_schemes() if not getattr(schemes.REGISTRY.find(name), "UNLIMITED", False)
    ]
    network, batch, machine = chosen["network"], int(chosen["batch"]), chosen["machine"]
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
    return TradeOffFigureData(f"{network}, batch {batch}, on {machine}: time against memory", capacity, rows)


def _beats(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether a scheme is as good in both and better in one."""
    amounts = [(one[key], other[key]) for key in ("peak_gib", "time_ms")]
    return all(a <= b for a, b in amounts) and any(a < b for a, b in amounts)


def draw(drawn: TradeOffFigureData) -> Figure:
    figure, axes = style.make_figure(drawn.title, height=6)
    front = sorted((row for row in drawn.rows if row["on_the_front"]), key=lambda row: row["peak_gib"])
    axes.step(
        [row["peak_gib"] for row in front], [row["time_ms"] for row in front], where="post", color=style.SERIES[2],
        lw=1, label="Pareto front of those that fit",
    )  # fmt: skip
    for fits, colour, label in ((True, style.SERIES[0], "fits"), (False, style.PALE, "does not fit")):
        spots = [(row["peak_gib"], row["time_ms"]) for row in drawn.rows if row["fits"] is fits]
        if spots:
            axes.scatter(*zip(*spots, strict=True), s=16, color=colour, label=label, zorder=3)
    for spot, names in _by_place(drawn.rows):
        text = textwrap.fill(", ".join(names), 36)
        axes.annotate(text, spot, (3, 2), textcoords="offset points", fontsize=6, color=style.INK, va="bottom")
    axes.axvline(drawn.capacity_gib, color=style.PALE, linewidth=0.8, linestyle="--", label="the GPU's memory")
    axes.set_xlabel("peak, GiB")
    axes.set_ylabel("time of an iteration, ms")
    style.add_legend(axes, 4)
    return figure


def _by_place(rows: list[dict[str, Any]]) -> list[tuple[tuple[float, float], list[str]]]:
    """The names of schemes that lie so near to each other that their labels would lie on each other."""
    most = {key: max(row[key] for row in rows) for key in ("peak_gib", "time_ms")}
    found: dict[tuple[int, int], tuple[tuple[float, float], list[str]]] = {}
    for row in rows:
        across, up = row["peak_gib"] / most["peak_gib"], row["time_ms"] / most["time_ms"]
        place = round(_PLACES_ACROSS * across), round(_PLACES_UP * up)
        found.setdefault(place, ((row["peak_gib"], row["time_ms"]), []))[1].append(row["scheme"])
    return list(found.values())
