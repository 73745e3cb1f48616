"""Which idea still pays: networks x links x every scheme, in half of the memory that `eager` needs.

``python -m buddysim plot ideas-today``; ``studies/ideas-today.toml`` names the networks and links, or a study of yours
whose points have a network and a link.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.ideas_page import best, page_lines
from buddysim.figures.shared.result_source import ResultSource
from buddysim.plotting import style
from buddysim.sweep.study_file import read_study
from buddysim.training import schemes
from buddysim.training.named_network import load_network

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "time in half of the memory that eager needs, relative to eager in enough memory"
ORDER = 40
WIDTH_IN = 10
FILE = ("STUDY.toml", "a study of networks and links")
DEFAULT_FILE = Path(__file__).parent / "studies" / "ideas-today.toml"
COLUMNS = (
    "network", "link", "scheme", "idea", "memory_gib", "fits", "slowdown", "shortfall_gib", "memory", "nothing_to_do",
    "is_lossy",
)  # fmt: skip
PLAIN = "eager"
_UNLIMITED = 1 << 50
_GIB = 2**30
#: Schemes of PyTorch and of today's libraries are ideas of their own; the papers' are by family.
_TODAY = ("baselines", "pytorch")
_LOSSY = ", lossy"
_TOO_LARGE = "#e4e4e4"


class IdeasTable(FigureTable):
    """The numbers of the figure, and the page that says what it shows."""

    def page(self) -> list[str]:
        """Return the lines of the page."""
        return [*page_lines(self.records())]


def data(source: ResultSource) -> IdeasTable:
    """Return a row for each network, link and scheme."""
    rows = [tuple(row[name] for name in COLUMNS) for settings in _points(source) for row in _rows(source, settings)]
    return IdeasTable(COLUMNS, rows)


def _points(source: ResultSource) -> Iterator[dict[str, Any]]:
    """The study's points.

    Raises
    ------
    BuddysimError
        points without network and link
    """
    path = source.file_or(DEFAULT_FILE)
    for point in read_study(path).points():
        settings = dict(point.settings)
        for name in ("network", "link"):
            if name not in settings:
                raise BuddysimError(f"{path}: {name}: expected each point to have one")
        yield settings


def _rows(source: ResultSource, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every scheme of a network behind a link."""
    simulated = source.training.result_of
    eager = simulated("training", {**settings, "scheme": PLAIN, "memory_bytes": _UNLIMITED})
    memory = needed_bytes(eager) // 2
    recorded = load_network(settings["network"]).recorded
    for scheme in schemes.runnable_schemes(settings, recorded):
        if scheme != PLAIN and schemes.family(scheme) == "baselines":
            continue
        result = simulated("training", {**settings, "scheme": scheme, "memory_bytes": memory})
        lossy = result["provenance"]["accuracy"] != schemes.UNCHANGED
        yield {
            "network": settings["network"],
            "link": settings["link"],
            "scheme": scheme,
            "idea": idea_of(scheme, lossy),
            "memory_gib": memory / _GIB,
            "fits": result["fits"],
            "slowdown": result["time_ms"] / eager["time_ms"],
            "shortfall_gib": (result["oom.peak_excess_bytes"] or result["oom.shortfall_bytes"]) / _GIB,
            "memory": result["oom.memory"],
            "nothing_to_do": result["nothing_to_do"],
            "is_lossy": lossy,
        }


def needed_bytes(result: Mapping[str, Any]) -> int:
    """Return what the GPU holds at the peak: reserved memory and what lies outside of the allocator."""
    return int(result["memory.peak_reserved_bytes"] + result["memory.by_kind"]["context"])


def idea_of(scheme: str, is_lossy: bool) -> str:
    """Return the name of a scheme's row: of the papers' schemes the family, lossy ones apart."""
    family = schemes.family(scheme)
    return (scheme if family in _TODAY else family) + _LOSSY * is_lossy


def draw(table: FigureTable) -> Figure:
    records = table.records()
    ideas, networks = (list(dict.fromkeys(row[name] for row in records)) for name in ("idea", "network"))
    figure, panels = style.make_figure(TITLE, 1, len(networks), WIDTH_IN, 0.27 * len(ideas) + 1.2, squeeze=False)
    for axes, network in zip(panels.flat, networks, strict=True):
        own = [row for row in records if row["network"] == network]
        _draw_network(axes, own, ideas, with_names=network == networks[0])
        axes.set_title(f"{network}, {own[0]['memory_gib']:,.1f} GiB", fontsize=8, color=style.INK)
    return figure


def _draw_network(axes: Axes, rows: list[dict[str, Any]], ideas: list[str], with_names: bool) -> None:
    """A cell for each idea and link: its slowdown, or what is missing."""
    links = list(dict.fromkeys(row["link"] for row in rows))
    for x, link in enumerate(links):
        for y, idea in enumerate(ideas):
            here = [row for row in rows if row["link"] == link and row["idea"] == idea]
            text, colour = _cell(best(here))
            dark = colour in (style.SERIES[0], style.SERIES[4])
            axes.fill_between([x - 0.48, x + 0.48], y - 0.46, y + 0.46, color=colour, linewidth=0)
            axes.text(x, y, text, ha="center", va="center", fontsize=7, color="white" if dark else style.INK)
    axes.set_xlim(-0.5, len(links) - 0.5)
    axes.set_ylim(len(ideas) - 0.5, -0.5)
    axes.set_xticks(range(len(links)), links, fontsize=7)
    axes.set_yticks(range(len(ideas)), ideas if with_names else [""] * len(ideas), fontsize=7)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _cell(row: Mapping[str, Any] | None) -> tuple[str, str]:
    """Text and colour: dark green up to 1.2 times the time, pale green up to 2, orange beyond; grey: does not fit."""
    if row is None:
        return "nothing to do", "white"
    if not row["fits"]:
        return f"{row['shortfall_gib']:,.1f} GiB short", _TOO_LARGE
    slowdown = row["slowdown"]
    colour = style.SERIES[4] if slowdown <= 1.2 else style.SERIES[5] if slowdown <= 2 else style.SERIES[3]
    return f"{slowdown:.2f}x", colour
