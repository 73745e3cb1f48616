"""The table of what was measured, in the form of ``gpu_curves.csv``; it grows by whole curves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from buddysim.base.csvfile import csv_text
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.output import write_text
from buddysim.base.textfile import csv_rows, read_text
from buddysim.measure.benchmarks import benchmarks
from buddysim.measure.gpu import MicrobenchmarkGpu
from buddysim.validation.curve.curve_data import COLUMNS, LARGEST_FILE

SOURCE = "buddysim"


def measure(gpu: MicrobenchmarkGpu, path: Path, progress: Callable[[str], object]) -> float:
    """Measures every curve that the table does not have yet, and writes it after each.

    Parameters
    ----------
    gpu : what is measured
    path : of the table, which may be there from a run that was interrupted
    progress : called with a line after every curve

    Returns
    -------
    float, the clock of the SMs in MHz: of the first run, where the table was there

    Raises
    ------
    BuddysimError
        where the file can't be read or written, or is of another GPU
    """
    rows, clock = _known(path, card_of(gpu.about.name))
    clock = clock if clock is not None else round(gpu.clock_mhz(), 1)
    done = {row[2] for row in rows}
    todo = list(benchmarks(gpu.about))
    for number, one in enumerate(todo, 1):
        if one.name not in done:
            rows += [
                [card_of(gpu.about.name), SOURCE, one.name, one.x_unit, f"{x:g}", one.y_unit, f"{one.y(gpu, x):.6g}",
                 f"{clock:g}"]
                for x in one.x
            ]  # fmt: skip
            write_text(path, csv_text([COLUMNS, *rows]))
        progress(f"{number} of {len(todo)}: {one.name}, {len(one.x)} points" + ", was there" * (one.name in done))
    return clock


def card_of(name: str) -> str:
    """What the table and a machine file call a GPU: letters, digits and dashes."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def _known(path: Path, card: str) -> tuple[list[list[str]], float | None]:
    """The rows that a table has, and the clock in them."""
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
