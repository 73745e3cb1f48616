"""An iteration's timeline as a figure: streams and stalls, and below them the memory by kind."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from buddysim.base.parsers.figure_file import write_figure_file
from buddysim.plotting.memory_kinds import COLOURS, label_of
from buddysim.plotting.notebook_figure import NotebookFigure, show_texts_as_they_are
from buddysim.training.iteration.timeline import (
    ALWAYS_SHOWN,
    COMPUTE,
    GATHER,
    HOST,
    NVME,
    OFFLOAD,
    PREFETCH,
    REDUCE,
    STREAMS,
)
from buddysim.training.outcome import IterationOutcome

PS_PER_MS = 10**9
INK = "#222222"
# Neighbours differ in lightness, so that they stay apart in grey.
_OPERATIONS = {
    "forward": "#1f4e79",
    "recompute": "#d6b4e8",
    "backward": "#9dc3e6",
    "encode": "#2e8b57",
    "decode": "#a9d8b8",
    "update": "#8497a8",
    OFFLOAD: "#c55a11",
    PREFETCH: "#f4b183",
    HOST: "#7f6000",
    NVME: "#404a2c",
    GATHER: "#5b3a8c",
    REDUCE: "#8c3a5b",
    "stall": "#e02020",
}
_NAMES_HEIGHT = 0.55  # rows over the streams, for the names of layers that stall
_LETTER_WIDTH = 0.0065  # of the axis's width
_MIN_NAMED = 0.002  # of the iteration: a shorter stall is a line
_MAX_NAMED = 12


def draw(outcomes: Mapping[str, IterationOutcome]) -> Figure:
    """Two panels for each scheme, on one axis of time and one scale of memory."""
    figure = NotebookFigure(figsize=(11, 0.6 + 3.4 * len(outcomes)), dpi=110, layout="constrained")
    panels = np.atleast_1d(figure.subplots(2 * len(outcomes), 1, sharex=True, height_ratios=[1, 1.7] * len(outcomes)))
    length = max(outcome.time_ps for outcome in outcomes.values()) / PS_PER_MS or 1
    for number, (scheme, outcome) in enumerate(outcomes.items()):
        _draw_streams(panels[2 * number], scheme, outcome, length)
        draw_memory(panels[2 * number + 1], outcome)
    most = max(float(panel.get_ylim()[1]) for panel in panels[1::2])
    for panel in panels[1::2]:
        panel.set_ylim(0, most)
    panels[-1].set_xlabel("time, ms", color=INK)
    panels[-1].set_xlim(0, length)
    first = next(iter(outcomes.values()))
    figure.suptitle(
        f"{first.network.name}, batch {first.batch}, on {first.machine.name}", x=0.01, ha="left", fontsize=11, color=INK
    )
    return figure


def write_figure(path: str | os.PathLike[str], outcomes: Mapping[str, IterationOutcome]) -> None:
    """Write the figure as PNG, SVG or PDF, by the ending of its name; whole or not at all."""
    figure = draw(outcomes)
    show_texts_as_they_are(figure)
    write_figure_file(figure, path, {"svg.hashsalt": "buddysim"})


def _draw_streams(axes: Axes, scheme: str, outcome: IterationOutcome, length: float) -> None:
    bars: dict[str, list[tuple[float, float, int]]] = {}
    used = {record.stream for record in outcome.schedule.records}
    rows = [stream for stream in STREAMS if stream in ALWAYS_SHOWN or stream in used]
    for record in outcome.schedule.records:
        what = record.pass_ if record.stream == COMPUTE else record.stream
        bars.setdefault(what, []).append((record.start_ps, record.end_ps, rows.index(record.stream)))
    bars["stall"] = [(stall.start_ps, stall.start_ps + stall.ps, 0) for stall in outcome.schedule.stalls]
    for what, colour in _OPERATIONS.items():
        axes.add_collection(_boxes(bars.get(what, []), colour))
    _name_stalls(axes, outcome, length)
    axes.set_ylim(len(rows) - 0.5, -0.5 - _NAMES_HEIGHT * bool(bars["stall"]))
    axes.set_yticks(range(len(rows)), rows)
    stalled = outcome.all_layers.stall_ps / PS_PER_MS
    fits = "" if outcome.fits else ", does not fit"
    axes.set_title(
        f"{scheme}: {outcome.time_ps / PS_PER_MS:.1f} ms, of which {stalled:.1f} ms waiting{fits}",
        loc="left", fontsize=9, color=INK,
    )  # fmt: skip
    shown = [what for what in _OPERATIONS if bars.get(what)]
    handles = [Patch(color=_OPERATIONS[what], label=what) for what in shown]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    _plain(axes)


def _name_stalls(axes: Axes, outcome: IterationOutcome, length: float) -> None:
    """The layers of the longest stalls, over them, as many as fit on an axis of `length` ms."""
    named: list[tuple[float, float]] = []
    for stall in sorted(outcome.schedule.stalls, key=lambda stall: (-stall.ps, stall.start_ps)):
        name = outcome.network.layers[stall.layer].name
        middle = (stall.start_ps + stall.ps / 2) / PS_PER_MS
        half = length * (len(name) + 1) * _LETTER_WIDTH / 2
        if stall.ps < _MIN_NAMED * length * PS_PER_MS or len(named) == _MAX_NAMED:
            break
        if any(middle - half < end and start < middle + half for start, end in named):
            continue
        named.append((middle - half, middle + half))
        axes.annotate(name, (middle, -0.42), ha="center", va="bottom", fontsize=6.5, color=_OPERATIONS["stall"])


def _boxes(bars: list[tuple[float, float, int]], colour: str) -> PolyCollection:
    half = 0.38
    corners = [
        [(start / PS_PER_MS, row - half), (end / PS_PER_MS, row - half),
         (end / PS_PER_MS, row + half), (start / PS_PER_MS, row + half)]
        for start, end, row in bars
    ]  # fmt: skip
    return PolyCollection(corners, facecolors=colour, edgecolors="white", linewidths=0.2)


def draw_memory(axes: Axes, outcome: IterationOutcome) -> None:
    """Bytes by kind over time, stacked, and the GPU's memory as a line."""
    times, held = outcome.memory_over_time()
    edges_ms = np.array(times) / PS_PER_MS
    base = np.zeros(len(times) - 1)
    handles: list[Patch | Line2D] = []
    for kind, amounts in held.items():
        top = base + np.array(amounts) / 2**30
        if any(amounts):
            axes.stairs(top, edges_ms, baseline=base, fill=True, color=COLOURS[kind], linewidth=0)
            handles.append(Patch(color=COLOURS[kind], label=label_of(kind, outcome.network.recorded)))
        base = top
    if outcome.capacity is not None and outcome.capacity / 2**30 < 1.6 * base.max():
        axes.axhline(outcome.capacity / 2**30, color=_OPERATIONS["stall"], linewidth=1, linestyle="--")
        handles.append(Line2D([], [], color=_OPERATIONS["stall"], linestyle="--", linewidth=1, label="GPU's memory"))
    axes.set_ylim(0, None)
    axes.set_ylabel("GPU memory, GiB", fontsize=8, color=INK)
    axes.legend(handles=handles[::-1], loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.tick_params(labelsize=8, colors=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
