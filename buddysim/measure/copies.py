"""Measures copies between device and host by size, both ways, into a table of curves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from buddysim.base.csvfile import csv_text
from buddysim.base.output import write_text
from buddysim.measure.benchmarks import MIB, TO_DEVICE, TO_HOST
from buddysim.measure.curve_table import SOURCE, card_name
from buddysim.validation.curve.curve_data import COLUMNS

SIZES = tuple(4**power * 1024 for power in range(2, 9))
"""Bytes of the copies: 16 KiB to 64 MiB."""


class CopyDevice(Protocol):
    """What copies."""

    name: str
    clock_mhz: float

    def copy_us(self, to_host: bool, count: int) -> float:
        """Measure a copy of `count` bytes."""


def measure_copies(path: Path, device: CopyDevice, progress: Callable[[str], object]) -> Path:
    """Measure copies of all `SIZES` into a table, and return its path.

    Parameters
    ----------
    progress : called with a line for each direction: the rate of the largest copy, the time of the smallest
    """
    rows = []
    for benchmark, to_host in ((TO_HOST, True), (TO_DEVICE, False)):
        spent = [device.copy_us(to_host, count) for count in SIZES]
        rates = [count / us / 1000 for count, us in zip(SIZES, spent, strict=True)]
        for count, rate in zip(SIZES, rates, strict=True):
            x = f"{count / MIB:g}"
            row = (card_name(device.name), SOURCE, benchmark, "MiB", x, "GB/s", f"{rate:.6g}", f"{device.clock_mhz:g}")
            rows.append(row)
        progress(f"{benchmark}: {rates[-1]:.1f} GB/s of 64 MiB, {spent[0]:.1f} us for 16 KiB")
    write_text(path, csv_text([COLUMNS, *rows]))
    return path
