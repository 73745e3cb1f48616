"""Published pairs of trainings that differ by a scheme: what it costs in time, and the bytes that it saves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from buddysim.base.textfile import csv_rows

_DATA = resources.files("buddysim.validation") / "data"
_FILE = "llm_schemes.csv"


@dataclass(frozen=True)
class MeasuredScheme:
    """A training with a scheme, relative to the same training without it.

    Attributes
    ----------
    id, compared_with : rows of the source, with the scheme and without
    source_set, variant : source, and what differs
    slowdown : time over the other row's; None where the source has none
    is_bound : the source says only that the slowdown is lower
    saved : memory saved in `saved_unit`: GiB, GB (10^9 bytes) or a fraction of the other row's
    memory_kind : of the source: active, allocated, reserved or not stated
    reason : why the pair isn't simulated; "" of others
    """

    id: str
    compared_with: str
    source_set: str
    variant: str
    slowdown: float | None
    is_bound: bool
    saved: float | None
    saved_unit: str
    memory_kind: str
    reason: str

    @classmethod
    def of(cls, cells: Mapping[str, str]) -> MeasuredScheme:
        """The row of a file's cells."""
        return cls(
            cells["id"], cells["compared_with"], cells["source_set"], cells["variant"], _number(cells["slowdown"]),
            cells["bound"] == "at most", _number(cells["saved"]), cells["saved_unit"], cells["memory_kind"],
            cells["reason"],
        )  # fmt: skip


@cache
def scheme_rows() -> tuple[MeasuredScheme, ...]:
    """Return every pair."""
    (_, header), *rows = csv_rows((_DATA / _FILE).read_text(encoding="utf-8"), _FILE)
    return tuple(MeasuredScheme.of(dict(zip(header, row, strict=True))) for _, row in rows)


def _number(text: str) -> float | None:
    return float(text) if text else None
