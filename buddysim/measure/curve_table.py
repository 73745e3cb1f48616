"""The table of measured curves, in the form of ``gpu_curves.csv``; it grows by complete curves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from buddysim.base.csvfile import csv_text
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.output import write_text
from buddysim.base.textfile import csv_rows, read_text
from buddysim.measure.benchmarks import make_benchmarks
from buddysim.measure.gpu import MicrobenchmarkGpu
from buddysim.validation.curve.curve_data import COLUMNS, LARGEST_FILE

SOURCE = "buddysim"


def measure_curves(gpu: MicrobenchmarkGpu, path: Path, progress: Callable[[str], object]) -> float:
    """Measure every curve that the table lacks, and write the table after each.

    Parameters
    ----------
    gpu : the GPU to measure
    path : of the table, which may exist from an interrupted run
    progress : called with a line after every curve

    Returns
    -------
    float, the clock of the SMs in MHz; if the table existed, of its first run

    Raises
    ------
    BuddysimError
            a file that can't be read or written, or that is of another GPU
    """
    rows, clock = _known(path, card_name(gpu.about.name))
    clock = clock if clock is not None else round(gpu.clock_mhz(), 1)
    done = {row[2] for row in rows}
    every = list(make_benchmarks(gpu.about))
    for number, benchmark in enumerate(every, 1):
        is_stored = benchmark.name in done
        if not is_stored:
            card, x_unit, y_unit = card_name(gpu.about.name), benchmark.x_unit, benchmark.y_unit
            for x in benchmark.x:
                y = benchmark.y(gpu, x)
                rows.append([card, SOURCE, benchmark.name, x_unit, f"{x:g}", y_unit, f"{y:.6g}", f"{clock:g}"])
            write_text(path, csv_text([COLUMNS, *rows]))
        stored = ", already in the table" if is_stored else ""
        progress(f"{number} of {len(every)}: {benchmark.name}, {len(benchmark.x)} points{stored}")
    return clock


def card_name(name: str) -> str:
    """Return the name of a GPU in the table and its machine file: letters, digits and dashes."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def _known(path: Path, card: str) -> tuple[list[list[str]], float | None]:
    """Return the rows of an existing table, and their clock."""
    if not path.exists():
        return [], None
    rows = [cells for _, cells in csv_rows(read_text(path, "table of measured curves", LARGEST_FILE), str(path))]
    if not rows or tuple(rows[0]) != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
        raise BuddysimError(f"{path}: not a table of measured curves: expected the columns {','.join(COLUMNS)}")
    others = sorted({row[0] for row in rows[1:]} - {card})
    if others:
        raise BuddysimError(f"{path}: curves of {shortened(others[0])}: expected those of {card}, or no such file")
    try:
        clocks = {float(row[-1]) for row in rows[1:]}
    except ValueError:
        raise BuddysimError(f"{path}: clock_mhz: expected numbers") from None
    return rows[1:], next(iter(clocks), None)
