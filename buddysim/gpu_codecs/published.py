"""Rates of GPU codecs that NVIDIA publishes (nvCOMP), to hold our kernels' times against."""

from __future__ import annotations

from functools import cache
from importlib import resources
from statistics import median
from typing import NamedTuple

from buddysim.base.textfile import csv_rows

_FILE = resources.files("buddysim.gpu_codecs") / "data" / "nvcomp.csv"


class RateRange(NamedTuple):
    """Milliseconds over a codec's GPUs and data sets."""

    least: float
    median: float
    most: float


@cache
def rates() -> dict[str, dict[str, tuple[float, ...]]]:
    """GB/s of raw data by codec and direction (``compression``, ``decompression``), in the order of the charts."""
    rows = csv_rows(_FILE.read_text(encoding="utf-8"), "nvcomp.csv")
    next(rows)
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for _, (direction, codec, *cells) in rows:
        found.setdefault(codec, {})[direction] = tuple(map(float, cells))
    return found


def both_ways_ms(codec: str, byte_count: int) -> RateRange:
    """Compression and decompression of a tensor at the published rates."""
    of = rates()[codec]
    times = [
        byte_count / 1e6 * (1 / there + 1 / back)
        for there, back in zip(of["compression"], of["decompression"], strict=True)
    ]
    return RateRange(min(times), median(times), max(times))
