"""GPU memory over one training iteration, stacked by kind: a panel for each scheme, with a mark at the peak.

TIMELINE.json is what ``python -m buddysim train NETWORK --timeline TIMELINE.json`` writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.figures.shared.memory_over_time import MemoryOfScheme, read_memory
from buddysim.figures.shared.result_source import ResultSource
from buddysim.plotting import style
from buddysim.plotting.memory_kinds import colour_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "training: GPU memory over time by kind"
FILE = ("TIMELINE.json", "the file that 'train --timeline TIMELINE.json' wrote")
ORDER = 21

_GIB = 2**30


def data(source: ResultSource) -> list[MemoryOfScheme]:
    """Return the memory of each scheme of a timeline, in their order."""
    return read_memory(source.file)


def draw(schemes: list[MemoryOfScheme]) -> Figure:
    """Draw a panel for each scheme, on one axis of time and one of bytes."""
    if not any(scheme.times_ms for scheme in schemes):
        raise BuddysimError("plot memory: no memory over time: expected a timeline that 'train --timeline' wrote")
    figure, panels = style.make_figure(
        TITLE, len(schemes), 1, height=0.8 + 2.6 * len(schemes), squeeze=False, sharex=True, sharey=True
    )
    for panel, scheme in zip(panels.flat, schemes, strict=True):
        _draw_kinds(panel, scheme)
        panel.set_title(scheme.title, fontsize=9, loc="left")
        panel.set_ylabel("GPU memory, GiB")
        panel.margins(x=0)
    panels.flat[-1].set_xlabel("time, ms")
    return figure


def _draw_kinds(panel: Any, scheme: MemoryOfScheme) -> None:
    edges = [*scheme.times_ms, max(scheme.end_ms, *scheme.times_ms)]
    base = [0.0] * len(scheme.times_ms)
    for kind, sizes in scheme.bytes_by_kind.items():
        top = [below + size / _GIB for below, size in zip(base, sizes, strict=True)]
        panel.stairs(top, edges, baseline=base, fill=True, color=colour_of(kind), linewidth=0, label=kind)
        base = top
    if scheme.peak_ms is not None:
        time, height = scheme.peak_ms, scheme.peak_bytes / _GIB
        text = f"{height:,.2f} GiB: {scheme.peak_text}"
        panel.plot([time], [height], "v", color=style.REPORTED, markersize=4)
        offset, side = ((4, 3), "left") if time < edges[-1] / 2 else ((-4, 3), "right")
        panel.annotate(text, (time, height), offset, textcoords="offset points", ha=side, fontsize=7, color=style.INK)
    handles, labels = panel.get_legend_handles_labels()
    panel.legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=7)
