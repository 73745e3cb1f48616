"""Slowdown and memory traffic of each memory configuration.

RESULT.json is what this command writes:
``python -m buddysim run TRACE --scheme ideal,bandwidth-compression,buddy,pinned-host --json RESULT.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.figures.shared.result_source import Results, ResultSource
from buddysim.plotting.style import INK, PALE
from buddysim.replay.schemes import BASELINE
from buddysim.replay.sensitivity import NO_DIFFERENCE, tells_no_difference

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "replay: slowdown and traffic of each memory configuration"
FILE = ("RESULT.json", "the file that 'run --json' wrote")
ORDER = 10

MEBI = 2**20
_TIME_UNITS = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3, "ps": 1}
BACKGROUND = {"facecolor": "white", "edgecolor": "none", "pad": 1}
BAR_COLOUR = "#4a6fa5"
_NO_DIFFERENCE_LABEL = NO_DIFFERENCE.replace(" this ", "\nthis ")

# Device memory in blues, the link in oranges; neighbours differ in lightness, so that grey prints distinguish them.
TRAFFIC = (
    ("DRAM: demand", ("device.demand_bytes",), "#1f4e79"),
    ("DRAM: over-fetch", ("device.overfetch_bytes",), "#9dc3e6"),
    ("DRAM: read-modify-write", ("device.read_modify_write_bytes",), "#d6e6f5"),
    ("DRAM: write-back", ("device.writeback_bytes",), "#4a8bc9"),
    ("DRAM: metadata", ("device.metadata_bytes",), "#16202b"),
    ("link: read", ("link.read_bytes",), "#c55a11"),
    ("link: write", ("link.write_bytes",), "#f4b183"),
)


def data(source: ResultSource) -> Results:
    """Return the saved results by scheme."""
    return source.saved_replay()


def draw(results: Results, needs_baseline: bool = True) -> Figure:
    """Draw slowdown and traffic, one row for each scheme, the baseline on top.

    Parameters
    ----------
    needs_baseline : False: without a result of the baseline, draw simulated times instead of slowdowns

    Raises
    ------
    BuddysimError
        without a result of the baseline, where it is needed
    """
    from buddysim.plotting.notebook_figure import NotebookFigure

    if needs_baseline and BASELINE not in results:
        schemes_text = ", ".join(results)
        raise BuddysimError(f"plot overview: no scheme {BASELINE!r} to compare with: the result has {schemes_text}")
    schemes = sorted(results, key=lambda scheme: (scheme != BASELINE, results[scheme]["time_ps"], scheme))
    figure = NotebookFigure(figsize=(9.6, 1.5 + 0.5 * len(schemes)), dpi=110, layout="constrained")
    times, traffic = figure.subplots(1, 2, sharey=True, width_ratios=(2, 3))
    _draw_times(times, schemes, results)
    _draw_traffic(traffic, schemes, results)
    first = results[schemes[0]]["provenance"]
    figure.suptitle(f"{first['trace']} on {first['machine']}", x=0.01, ha="left", fontsize=11, color=INK)
    return figure


def _draw_times(axes: Axes, schemes: Sequence[str], results: Results) -> None:
    times = [results[scheme]["time_ps"] for scheme in schemes]
    if BASELINE in results:
        divisor = max(1, results[BASELINE]["time_ps"])
        label = f"slowdown vs {BASELINE} (uncompressed, unlimited memory)"
        axes.axvline(1, color=PALE, linewidth=0.8, linestyle=":")
    else:
        unit, divisor = next((unit, ps) for unit, ps in _TIME_UNITS.items() if max(times) >= ps or ps == 1)
        label = f"simulated time, {unit}"
    lengths = [time / divisor for time in times]
    axes.barh(schemes, lengths, color=BAR_COLOUR, height=0.6)
    for row, (scheme, length) in enumerate(zip(schemes, lengths, strict=True)):
        text, separator = f"{length:.2f}" if BASELINE in results else f"{length:.3g}", "  "
        if scheme != BASELINE and BASELINE in results and tells_no_difference(results[scheme]):
            text, separator = _NO_DIFFERENCE_LABEL, "\n"
        if results[scheme]["footprint.buddy_bytes"]:
            text += f"{separator}(ratio {_compression_ratio(results[scheme])})"
        _annotate(axes, length, row, text)
    axes.set_xlim(0, 1.45 * max(lengths))
    axes.set_xlabel(label)
    axes.invert_yaxis()
    _tidy(axes)


def _compression_ratio(result: Mapping[str, Any]) -> str:
    """The compression ratio; of synthetic sizes, its range over seeds."""
    low, high = result.get("compression.synthetic_min_ratio"), result.get("compression.synthetic_max_ratio")
    if low is None or high is None:
        return f"{result['compression.ratio']:.2f}x"
    return f"{low:.2f}x to {high:.2f}x, synthetic sizes"


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
    axes.set_xlabel("traffic, MiB")
    if axes.patches:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, fontsize=8, frameon=False, handlelength=1)
    _tidy(axes)


def _annotate(axes: Axes, end: float, row: int, text: str) -> None:
    """Write a text after the end of a bar, over lines that cross it."""
    axes.annotate(
        text, (end, row), (4, 0), textcoords="offset points", va="center", fontsize=9, color=INK, bbox=BACKGROUND
    )


def _tidy(axes: Axes) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(PALE)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", colors=PALE, labelsize=8)
