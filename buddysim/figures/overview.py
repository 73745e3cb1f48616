"""What each memory configuration costs, and what it moves.

RESULT.json is what this command writes:
``python -m buddysim run TRACE --scheme ideal,bandwidth-compression,buddy,pinned-host --json RESULT.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from buddysim.base.errors import BuddysimError
from buddysim.figures.shared.result_source import Results, ResultSource
from buddysim.plotting.notebook_figure import NotebookFigure
from buddysim.plotting.style import INK, PALE
from buddysim.replay.schemes import BASELINE

TITLE = "replay: time and traffic of each memory configuration"
FILE = ("RESULT.json", "the file that 'run --json' wrote")
ORDER = 10

MEBI = 2**20
BACKGROUND = {"facecolor": "white", "edgecolor": "none", "pad": 1}
BAR_COLOUR = "#4a6fa5"

# Device memory in blues, the link in oranges; neighbours differ in lightness, so that they stay apart in grey.
TRAFFIC = (
    ("device: demand", ("device.demand_bytes",), "#1f4e79"),
    ("device: over-fetch", ("device.overfetch_bytes",), "#9dc3e6"),
    ("device: read-modify-write", ("device.read_modify_write_bytes",), "#d6e6f5"),
    ("device: write-back", ("device.writeback_bytes",), "#4a8bc9"),
    ("device: metadata", ("device.metadata_bytes",), "#16202b"),
    ("link: read", ("link.read_bytes",), "#c55a11"),
    ("link: write", ("link.write_bytes",), "#f4b183"),
)


def data(source: ResultSource) -> Results:
    """The saved results by scheme."""
    return source.saved_replay()


def draw(results: Results) -> Figure:
    """The figure: slowdown and traffic of each scheme, one row each, the baseline on top."""
    schemes = sorted(results, key=lambda scheme: (scheme != BASELINE, results[scheme]["time_ps"], scheme))
    figure = NotebookFigure(figsize=(9.6, 1.5 + 0.5 * len(schemes)), dpi=110, layout="constrained")
    times, traffic = figure.subplots(1, 2, sharey=True, width_ratios=(2, 3))
    _draw_times(times, schemes, results)
    _draw_traffic(traffic, schemes, results)
    first = results[schemes[0]]["provenance"]
    figure.suptitle(f"{first['trace']} on {first['machine']}", x=0.01, ha="left", fontsize=11, color=INK)
    return figure


def _draw_times(axes: Axes, schemes: Sequence[str], results: Results) -> None:
    baseline = results.get(BASELINE)
    if baseline is None:
        raise BuddysimError(f"the result has no scheme {BASELINE!r} to compare with: it has {', '.join(results)}")
    ratios = [results[scheme]["time_ps"] / max(1, baseline["time_ps"]) for scheme in schemes]
    axes.barh(schemes, ratios, color=BAR_COLOUR, height=0.6)
    for row, (scheme, ratio) in enumerate(zip(schemes, ratios, strict=True)):
        text = f"{ratio:.2f}"
        if results[scheme]["footprint.buddy_bytes"]:
            text += f"  ({_memory(results[scheme])})"
        _annotate(axes, ratio, row, text)
    axes.axvline(1, color=PALE, linewidth=0.8, linestyle=":")
    axes.set_xlim(0, 1.45 * max(ratios))
    axes.set_xlabel(f"time / time of {BASELINE} (uncompressed, unlimited memory)")
    axes.invert_yaxis()
    _tidy(axes)


def _memory(result: Mapping[str, Any]) -> str:
    """How much more memory there is; of drawn sizes how far the seed spreads it."""
    low, high = result.get("compression.synthetic_min_ratio"), result.get("compression.synthetic_max_ratio")
    return f"{result['compression.ratio']:.2f}x memory" if low is None else f"{low:.2f}x to {high:.2f}x memory, drawn"


def _draw_traffic(axes: Axes, schemes: Sequence[str], results: Results) -> None:
    left = [0.0] * len(schemes)
    for label, keys, colour in TRAFFIC:
        widths = [sum(results[scheme][key] for key in keys) / MEBI for scheme in schemes]
        if any(widths):
            axes.barh(schemes, widths, left=left, color=colour, height=0.6, label=label)
            left = [start + width for start, width in zip(left, widths, strict=True)]
    for row, total in enumerate(left):
        _annotate(axes, total, row, f"{total:,.0f}" if total >= 10 else f"{total:.3g}")
    axes.set_xlim(0, 1.12 * max(*left, 1e-6))
    axes.set_xlabel("moved, MiB")
    if axes.patches:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, fontsize=8, frameon=False, handlelength=1)
    _tidy(axes)


def _annotate(axes: Axes, end: float, row: int, text: str) -> None:
    """Writes after the end of a bar, over lines that cross the text."""
    axes.annotate(
        text, (end, row), (4, 0), textcoords="offset points", va="center", fontsize=9, color=INK, bbox=BACKGROUND
    )


def _tidy(axes: Axes) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(PALE)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", colors=PALE, labelsize=8)
