"""Time and memory of points before they run, from what the store has measured of like ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import mean
from typing import Any

from buddysim.sweep.point import SweepPoint

#: A point like a measured one may take that much more memory.
MARGIN = 1.25

Measured = Mapping[str, Any]


class Estimate:
    """Estimate the time and memory of points.

    Parameters
    ----------
    rows : rows of stored results: `engine`, `content`, `scheme`, ..., `seconds`, `peak_rss_bytes`
    """

    def __init__(self, rows: Iterable[Measured] = ()) -> None:
        self._seconds: dict[Any, list[float]] = {}
        self._memory: dict[Any, int] = {}
        self._contents: dict[Any, str] = {}
        for row in rows:
            for key in ((row["engine"], row["content"], row["scheme"]), (row["engine"], row["content"])):
                self._seconds.setdefault(key, []).append(row["seconds"])
                self._memory[key] = max(self._memory.get(key, 0), row["peak_rss_bytes"])

    def seconds(self, point: SweepPoint) -> float | None:
        """The mean of what points of the same subject and scheme took; None where none was measured."""
        for key in self._keys(point):
            if key in self._seconds:
                return mean(self._seconds[key])
        return None

    def memory_bytes(self, point: SweepPoint) -> int:
        """The most that such a point took and a quarter more; the engine's own estimate where none was measured."""
        for key in self._keys(point):
            if key in self._memory:
                return int(self._memory[key] * MARGIN)
        return point.sweep_engine.memory_bytes(point.settings)

    def _keys(self, point: SweepPoint) -> list[tuple[Any, ...]]:
        subject = point.engine, point.settings[point.sweep_engine.SUBJECT]
        if subject not in self._contents:
            self._contents[subject] = point.sweep_engine.identity(point.settings)[point.sweep_engine.SUBJECT]
        content = self._contents[subject]
        axis = point.sweep_engine.axes().get("scheme")
        scheme = point.settings.get("scheme", None if axis is None else axis.default)
        return [(point.engine, content, scheme), (point.engine, content)]
