"""GPU memory over one training iteration, stacked by kind: a panel for each scheme, with a mark at the peak.

TIMELINE.json is what ``python -m buddysim train NETWORK --timeline TIMELINE.json`` writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.figures.shared.result_source import ResultSource
from buddysim.plotting import style
from buddysim.plotting.memory_kinds import COUNTER, PEAK, colour_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "training: GPU memory over time by kind"
FILE = ("TIMELINE.json", "the file that 'train --timeline TIMELINE.json' wrote")
ORDER = 21

_GIB, _US_PER_MS = 2**30, 1000


@dataclass
class MemoryOfScheme:
    """The memory of one scheme.

    Attributes
    ----------
    title : scheme, network, batch and machine
    times_ms : start of each step
    end_ms : end of the iteration
    bytes_by_kind : by the kind's name, bytes of each step
    peak : of the mark, its time in ms and what it says
    """

    title: str
    times_ms: list[float] = field(default_factory=list)
    end_ms: float = 0.0
    bytes_by_kind: dict[str, list[int]] = field(default_factory=dict)
    peak: tuple[float, Mapping[str, Any]] | None = None


def data(source: ResultSource) -> list[MemoryOfScheme]:
    """Return the memory of each scheme of a timeline, in their order."""
    with source.result_errors("plot memory"):
        events = source.saved_timeline()
        schemes = {
            event["pid"]: MemoryOfScheme(event["args"]["name"]) for event in events if event["name"] == "process_name"
        }
        for event in events:
            scheme = schemes[event["pid"]]
            if event["name"] == COUNTER:
                scheme.times_ms.append(event["ts"] / _US_PER_MS)
                for kind, byte_count in event["args"].items():
                    scheme.bytes_by_kind.setdefault(kind, []).append(byte_count)
            elif event["name"] == PEAK:
                scheme.peak = event["ts"] / _US_PER_MS, event["args"]
            elif event["ph"] == "X":
                scheme.end_ms = max(scheme.end_ms, (event["ts"] + event["dur"]) / _US_PER_MS)
    return list(schemes.values())


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
    if scheme.peak is not None:
        time, reached = scheme.peak
        where = ", ".join(filter(None, (reached["module"], reached["operation"])))
        text = f"{reached['bytes'] / _GIB:,.2f} GiB: {reached['phase']} of {where}"
        panel.plot([time], [reached["bytes"] / _GIB], "v", color=style.REPORTED, markersize=4)
        offset, side = ((4, 3), "left") if time < edges[-1] / 2 else ((-4, 3), "right")
        panel.annotate(
            text, (time, reached["bytes"] / _GIB), offset, textcoords="offset points", ha=side, fontsize=7,
            color=style.INK,
        )  # fmt: skip
    handles, labels = panel.get_legend_handles_labels()
    panel.legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=7)
