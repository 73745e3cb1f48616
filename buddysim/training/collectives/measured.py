"""Measured collectives, ``data/measured.csv``: medians by GPU, version of NCCL, kind, number of GPUs and bytes.

Of ai-dynamo/aiconfigurator (NVIDIA, Apache-2.0) and microsoft/vidur (MIT), converted by ``tools/fit_collectives.py``.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import NamedTuple

from buddysim.base.textfile import csv_rows

_DATA = resources.files("buddysim.training.collectives") / "data" / "measured.csv"


class MeasuredCollective(NamedTuple):
    """One measured time.

    Attributes
    ----------
    gpu : as the source names it
    version : of NCCL; ``"torch.distributed"`` where the host's part is in the time
    bytes : of the whole tensor
    us : microseconds
    """

    gpu: str
    version: str
    kind: str
    gpus: int
    bytes: int
    us: float


@cache
def measured_collectives() -> tuple[MeasuredCollective, ...]:
    """All rows."""
    rows = list(csv_rows(_DATA.read_text(encoding="utf-8"), _DATA.name))[1:]
    return tuple(
        MeasuredCollective(gpu, version, kind, int(gpus), int(byte_count), float(us))
        for _, (gpu, version, kind, gpus, byte_count, us) in rows
    )
