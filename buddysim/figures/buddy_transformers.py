"""Buddy Compression on a transformer: ratios of its tensors, and slowdowns of its kernels on today's GPUs.

``python -m buddysim plot buddy-transformers`` reads the traces of the repository; a folder with traces of
``python -m tools.transformer_traces`` may be named. Each GPU is scaled down to eight memory channels, and its L2 to the
trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from buddysim.base.errors import BuddysimError
from buddysim.buddy.profiler import profile
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.figures.shared.result_source import ResultSource
from buddysim.figures.shared.scaled_gpu import ScaledGpu
from buddysim.figures.shared.transformers_page import page_lines
from buddysim.plotting import style
from buddysim.trace import open_trace, shipped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Buddy Compression on a transformer: ratios of its tensors, slowdowns of its kernels"
ORDER = 41
WIDTH_IN = 10
FILE = ("FOLDER", "a folder with the traces of python -m tools.transformer_traces")
DEFAULT_FILE = shipped.FOLDERS[0]
#: Part of a model's work, by trace.
PROGRAMS: Final = {
    "attention": "prefill",
    "rms-norm": "prefill",
    "paged-decode": "decode",
    "adamw": "training",
}
TENSORS: Final = "transformer-tensors"
MACHINES: Final = ("h100-sxm", "h200", "gh200")
SCHEMES: Final = ("buddy", "bandwidth-compression", "unified-memory", "pinned-host")
#: Bandwidth of the whole GPU's link in each direction, GB/s.
LINKS: Final = (64, 150, 450, 900)
#: Buddy Thresholds: what the profile may let overflow.
THRESHOLDS: Final = (0.3, 0.6)
COLUMNS = (
    "part", "machine", "phase", "program", "tensor", "format", "scheme", "threshold", "link_gbs", "target", "ratio",
    "overflow", "slowdown", "footprint_mib", "l2_mib",
)  # fmt: skip
_MIB = 2**20


class TransformersTable(FigureTable):
    """The numbers of the figure, and the page that says what it shows."""

    def page(self) -> list[str]:
        """Return the lines of the page."""
        return [*page_lines(self.records())]


def data(source: ResultSource) -> TransformersTable:
    """Return a row for each tensor, for each program under each scheme, and for each bandwidth of the link.

    Raises
    ------
    BuddysimError
        traces that aren't in the folder
    """
    folder = source.file_or(DEFAULT_FILE)
    for name in (TENSORS, *PROGRAMS):
        if not (folder / f"{name}.bin").is_file():
            raise BuddysimError(
                f"{folder / name}.bin: not found: expected a folder with the traces of a transformer, such as traces/"
            )
    rows = [*_tensors(folder), *_schemes(source, folder)]
    return TransformersTable(COLUMNS, [tuple(row.get(name) for name in COLUMNS) for row in rows])


def _tensors(folder: Path) -> Iterator[dict[str, Any]]:
    """Each kind of tensors in each number format: target, overflow, and the ratio of entries of any size."""
    for row in profile(folder / f"{TENSORS}.bin", THRESHOLDS[0]).rows:
        tensor, _, number_format = row.name.partition(".")
        yield {
            "part": "tensor",
            "tensor": tensor,
            "format": number_format,
            "threshold": THRESHOLDS[0],
            "target": row.target.name,
            "ratio": 128 / float(row.mean_entry_bytes),
            "overflow": float(row.overflow_fraction(row.target)),
        }


def _schemes(source: ResultSource, folder: Path) -> Iterator[dict[str, Any]]:
    """Each program under each scheme, behind the machine's own link and others."""
    for program, phase in PROGRAMS.items():
        path = folder / f"{program}.bin"
        footprint = _footprint(path)
        for machine in MACHINES:
            gpu = ScaledGpu.of(machine, footprint)
            common = {
                "machine": machine,
                "phase": phase,
                "program": program,
                "footprint_mib": footprint / _MIB,
                "l2_mib": gpu.l2_bytes / _MIB,
            }
            ideal = source.replay(path, ["ideal"], machine, **gpu.settings())["ideal"]
            for threshold in THRESHOLDS:
                for link in (None, *LINKS):
                    for scheme in SCHEMES if link is None and threshold == THRESHOLDS[0] else ("buddy",):
                        options = gpu.settings(link) | {"threshold": threshold}
                        result = source.replay(path, [scheme], machine, **options)[scheme]
                        yield common | {
                            "part": "scheme" if link is None else "link",
                            "scheme": scheme,
                            "threshold": threshold,
                            "link_gbs": link,
                            "ratio": result["compression.ratio"],
                            "overflow": result.get("buddy.access_fraction"),
                            "slowdown": result["time_ps"] / ideal["time_ps"],
                        }


def _footprint(path: Path) -> int:
    with open_trace(path) as trace:
        return sum(allocation.bytes for allocation in trace.allocations)


def draw(table: FigureTable) -> Figure:
    figure, panels = style.make_figure(TITLE, 1, 3, WIDTH_IN, 3.4)
    _draw_tensors(panels[0], table)
    _draw_schemes(panels[1], table)
    _draw_links(panels[2], table)
    return figure


def _draw_tensors(axes: Axes, table: FigureTable) -> None:
    rows = table.rows_with(part="tensor", threshold=THRESHOLDS[0])
    tensors, formats = (list(dict.fromkeys(row[name] for row in rows)) for name in ("tensor", "format"))
    series = {
        each: [next(row["ratio"] for row in rows if (row["tensor"], row["format"]) == (one, each)) for one in tensors]
        for each in formats
    }
    style.draw_grouped_bars(axes, tensors, series)
    axes.axhline(1, color=style.PALE, linewidth=0.8, linestyle=":")
    axes.set_ylabel("mean ratio of entries")
    axes.set_yscale("log")
    axes.tick_params(axis="x", rotation=30)
    style.add_legend(axes, 2)


def _draw_schemes(axes: Axes, table: FigureTable) -> None:
    rows = table.rows_with(part="scheme", machine=MACHINES[0], threshold=THRESHOLDS[0])
    series = {
        scheme: [next(row["slowdown"] for row in rows if (row["program"], row["scheme"]) == (name, scheme))
                 for name in PROGRAMS]
        for scheme in SCHEMES
    }  # fmt: skip
    style.draw_grouped_bars(axes, list(PROGRAMS), series)
    axes.axhline(1, color=style.PALE, linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    axes.set_ylabel(f"slowdown on {MACHINES[0]}")
    axes.tick_params(axis="x", rotation=30)
    style.add_legend(axes, 2)


def _draw_links(axes: Axes, table: FigureTable) -> None:
    for number, program in enumerate(PROGRAMS):
        rows = table.rows_with(part="link", machine=MACHINES[0], program=program, threshold=THRESHOLDS[1])
        x, y = ([row[name] for row in rows] for name in ("link_gbs", "slowdown"))
        axes.plot(x, y, color=style.SERIES[2 * number], marker="o", markersize=3, linewidth=1, label=program)
    axes.axhline(1, color=style.PALE, linewidth=0.8, linestyle=":")
    axes.set_xlabel("bandwidth of the link, GB/s each way")
    axes.set_ylabel(f"slowdown of buddy, threshold {100 * THRESHOLDS[1]:.0f} %")
    axes.set_yscale("log")
    style.add_legend(axes, 2)
