"""Rates of GPU codecs that NVIDIA publishes (nvCOMP), to compare the simulated kernels with."""

from __future__ import annotations

from functools import cache
from importlib import resources
from statistics import median
from typing import NamedTuple

from buddysim.base.textfile import csv_rows

_FILE = resources.files("buddysim.gpu_codecs") / "data" / "nvcomp.csv"


class RateRange(NamedTuple):
    """Range of milliseconds over a codec's GPUs and data sets."""

    min: float
    median: float
    max: float


@cache
def rates() -> dict[str, dict[str, tuple[float, ...]]]:
    """GB/s of raw data by codec and direction (``compression``, ``decompression``), in the order of the charts."""
    rows = csv_rows(_FILE.read_text(encoding="utf-8"), "nvcomp.csv")
    next(rows)
    by_codec: dict[str, dict[str, tuple[float, ...]]] = {}
    for _, (direction, codec, *cells) in rows:
        by_codec.setdefault(codec, {})[direction] = tuple(map(float, cells))
    return by_codec


def both_ways_ms(codec: str, byte_count: int) -> RateRange:
    """Return the time of compression plus decompression of a tensor at the published rates."""
    codec_rates = rates()[codec]
    times = [
        byte_count / 1e6 * (1 / compression + 1 / decompression)
        for compression, decompression in zip(codec_rates["compression"], codec_rates["decompression"], strict=True)
    ]
    return RateRange(min(times), median(times), max(times))
