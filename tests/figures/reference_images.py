"""Reference images of the study's figures: made-up numbers, plotted without letters, in grey.

``python -m tests.figures.reference_images`` writes them anew, after an intended change: look at them before. Images
without letters do not depend on fonts, and are small.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray
from PIL import Image

from buddysim.figures import REGISTRY
from buddysim.figures.shared.figure_table import FigureTable
from buddysim.papers.buddy.case_study import BATCHES
from buddysim.papers.buddy.digitized_figures import POLICIES, THRESHOLDS, figures
from buddysim.papers.buddy.performance_numbers import LINKS_GBS, OVERSUBSCRIBED, link_text

FOLDER = Path(__file__).parent / "reference"
DPI = 72
#: Smallest difference, of 255 shades, at which a pixel counts as different; the number allowed to differ.
SHADES, OTHERS = 20, 4
WORKLOADS = (("cg", "HPC"), ("lulesh", "HPC"), ("HPC mean", "HPC"), ("alexnet", "DL"), ("DL mean", "DL"))
_SIZES = (0, 8, 16, 32, 64, 80, 96, 128)


def numbers(low: float, high: float) -> Iterator[float]:
    """Yield distinct numbers from `low` to `high`."""
    return (low + (high - low) * (0.5 + 0.618034 * n) % 1 for n in itertools.count())


def made_up(keys: Sequence[tuple[Any, ...]], ranges: Mapping[str, tuple[float, float]], *names: str) -> FigureTable:
    """Return a row for each of the keys, with numbers from the ranges."""
    sample = {column: numbers(*ends) for column, ends in ranges.items()}
    rows = [(*key, *(next(column) for column in sample.values())) for key in keys]
    return FigureTable((*names, *ranges), rows)


def product(*parts: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return every combination, with tuples flattened."""
    flat = ((one if isinstance(one, tuple) else (one,) for one in key) for key in itertools.product(*parts))
    return [tuple(itertools.chain.from_iterable(key)) for key in flat]


def classes() -> FigureTable:
    keys = [(name, group) for name, group in WORKLOADS]
    table_rows = made_up(keys, {f"fraction_{size}B": (0.1, 1.0) for size in _SIZES}, "workload", "group")
    rows = [(*row[:2], *(fraction / sum(row[2:]) for fraction in row[2:])) for row in table_rows.rows]
    return FigureTable(table_rows.columns, rows)


def page_classes() -> FigureTable:
    entries = [f"entry{n}_bytes" for n in range(64)]
    keys = [(name, row, 12) for name, row in product(("cg", "lulesh"), range(12))]
    table_rows = made_up(keys, dict.fromkeys(entries, (0.0, 128.0)), "workload", "row", "pages")
    return FigureTable(table_rows.columns, [(*row[:-1], None) for row in table_rows.rows])


def trainings() -> FigureTable:
    figure = REGISTRY.find("fig13")
    at = {column: n for n, column in enumerate(figure.COLUMNS)}
    rows = []

    def add(**values: Any) -> None:
        row: list[Any] = [None] * len(at)
        for column, value in values.items():
            row[at[column]] = value
        rows.append(tuple(row))

    footprint, speed, gain = numbers(0.1, 40), numbers(10, 90), numbers(-10, 40)
    for name, batch in product(("alexnet", "vgg16", "biglstm"), BATCHES):
        add(workload=name, batch=batch, footprint_gib=next(footprint), samples_per_s=next(speed))
    for name in ("alexnet", "vgg16", "mean"):
        add(workload=name, speedup_percent=next(gain), paper_speedup_percent=next(gain))
    for n, (batch, epoch) in enumerate(product((16, 64, 256), range(1, 7))):
        mean = 60 + 4 * epoch + n
        ends = {"accuracy_least_percent": mean - 4, "accuracy_most_percent": mean + 3}
        add(workload="small network", batch=batch, epoch=epoch, accuracy_percent=mean, **ends)
    return FigureTable(figure.COLUMNS, rows)


@cache
def tables() -> dict[str, FigureTable]:
    """Return made-up numbers for every figure."""
    algorithms = [key for key, value in figures()["fig5a_ratio_by_algorithm"].items() if isinstance(value, dict)]
    ratio, fraction = (1.0, 8.0), (0.05, 0.95)
    systems = ("bandwidth-compression", *map(link_text, LINKS_GBS))
    of_workload = ("workload", "group")
    one_each = [(name, group) for name, group in WORKLOADS if "mean" not in name]
    compressors = [(name, "bpc", group, 3) for name, group in product(algorithms, ("HPC", "DL"))]
    metadata = [(name, line, 1024 << n) for name, line, n in product(list("abcdef"), (32, 128), range(7))]
    return {
        "fig3": made_up(
            product(one_each, range(10)), {"ratio": ratio, "paper_ratio": ratio}, *of_workload, "snapshot"
        ),
        "fig5-compressors": made_up(
            compressors, {"ratio": ratio, "paper_ratio": ratio}, "algorithm", "compressor", "group", "workloads"
        ),
        "fig5-classes": classes(),
        "fig5-metadata": made_up(metadata, {"hit_fraction": fraction}, "workload", "line_bytes", "bytes_per_slice"),
        "fig6": page_classes(),
        "fig7": made_up(
            product(WORKLOADS, POLICIES),
            {"ratio": ratio, "overflow_fraction": fraction, "paper_ratio": ratio,
             "paper_buddy_access_fraction": fraction},
            *of_workload, "policy",
        ),
        "fig8": made_up(
            [(name, number, 1.5, 1.6) for name, number in product(("squeezenet", "resnet50"), range(10))],
            {"overflow_fraction": fraction}, "workload", "snapshot", "ratio", "paper_ratio",
        ),
        "fig9": made_up(
            product(WORKLOADS, THRESHOLDS), {"ratio": ratio, "overflow_fraction": fraction, "paper_ratio": ratio},
            *of_workload, "threshold",
        ),
        "fig10": made_up(
            [(name, number, 1e4 * 3**number) for name, number in product(("gemm", "lud"), range(4))],
            {"replayed_cycles": (1e4, 9e5), "accelsim_cycles": (2e4, 5e5)}, "program", "kernel", "measured_cycles",
        ),
        "fig11": made_up(
            product(WORKLOADS, systems), {"performance": (0.4, 1.2), "paper_performance": (0.4, 1.2)},
            *of_workload, "system",
        ),
        "fig12": made_up(
            [(name, fraction, 2.0 + n, 1.1 + n / 10) for n, name in enumerate(("ilbdc", "palm", "sp"))
             for fraction in OVERSUBSCRIBED],
            {"unified_memory_slowdown": (1.5, 40.0)}, "workload", "oversubscription_fraction",
            "pinned_host_slowdown", "buddy_slowdown",
        ),
        "fig13": trainings(),
    }  # fmt: skip


def plotted(name: str) -> Figure:
    """Return a figure of made-up numbers, without its letters."""
    figure: Figure = REGISTRY.find(name).draw(tables()[name])
    for axes in figure.axes:
        axes.tick_params(which="both", labelbottom=False, labelleft=False, labelright=False)
        if (legend := axes.get_legend()) is not None:
            legend.remove()
    for text in figure.findobj(Text):
        text.set_visible(False)
        text.set_in_layout(False)
    figure.set_dpi(DPI)
    return figure


def pixels(figure: Figure) -> NDArray[np.uint8]:
    """Change colours to shades of grey; the figure keeps the layout of its first rendering."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("L"))


def reference(name: str) -> NDArray[np.uint8]:
    """Return the reference image."""
    with Image.open(FOLDER / f"{name}.png") as image:
        return np.asarray(image)


def others(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> int:
    """Return the number of pixels that differ between two images."""
    if one.shape != other.shape:
        return max(one.size, other.size)
    return int(np.count_nonzero(np.abs(one.astype(int) - other) >= SHADES))


def series(figure: Figure) -> list[list[Artist]]:
    """Return the artists of numbers: groups of bars, lines, marks and images."""
    artists: list[list[Artist]] = []
    for axes in figure.axes:
        bars = [list(container) for container in axes.containers]
        of_containers = set(itertools.chain.from_iterable(bars))
        alone = [*axes.lines, *(one for one in axes.collections if one.get_paths()), *axes.images]
        artists += bars + [[artist] for artist in alone if artist not in of_containers]
    return artists


def main() -> None:
    for name in tables():
        Image.fromarray(pixels(plotted(name))).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
