"""Errors of the times of collectives, by GPU and kind, on rows that constants were fitted to and on the others."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import NamedTuple

from buddysim.training.collectives.constants import link_constants
from buddysim.training.collectives.measured import MeasuredCollective, measured_collectives
from buddysim.training.collectives.split import LINKS, is_fitted
from buddysim.training.collectives.times import collective_us

#: Bytes from which the time of a collective depends on rates more than on latencies.
LARGE = 1 << 24


class CollectiveErrors(NamedTuple):
    """Errors of one group of rows.

    Attributes
    ----------
    ratio : median of predicted by measured time
    error : median of its distance from one
    near : fraction of rows within a quarter
    """

    gpu: str
    version: str
    kind: str
    large: bool
    fitted: bool
    rows: int
    ratio: float
    error: float
    near: float


def collective_errors() -> list[CollectiveErrors]:
    """The errors of every group of measured rows: by GPU, version of NCCL, kind, size class, fitted or not."""
    groups: dict[tuple[str, str, str, bool, bool], list[float]] = defaultdict(list)
    for row in measured_collectives():
        groups[row.gpu, row.version, row.kind, row.bytes >= LARGE, is_fitted(row)].append(predicted_us(row) / row.us)
    return [
        CollectiveErrors(
            *group,
            len(ratios),
            median(ratios),
            median(abs(ratio - 1) for ratio in ratios),
            sum(abs(ratio - 1) <= 0.25 for ratio in ratios) / len(ratios),
        )
        for group, ratios in sorted(groups.items())
    ]


def predicted_us(row: MeasuredCollective) -> float:
    """Return the predicted microseconds of a measured row."""
    return collective_us(link_constants()[LINKS[row.gpu]], row.kind, row.bytes, row.gpus)
