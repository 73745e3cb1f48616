"""The points of a study by their keys, made at each look-up: a plan keeps a key and an index of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from buddysim.sweep.point import SweepPoint
from buddysim.sweep.study import PointKeys, Study


class PlannedPoints(Mapping[str, SweepPoint]):
    """Every point of a study by its key, in order, each once; behind them the baselines that the study lacks.

    Parameters
    ----------
    study : the study

    Attributes
    ----------
    baselines : keys of points that are only baselines of others
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        #: Index of a point in the product of the axes; of a baseline, ~ the index of a point that it belongs to.
        self._indices: dict[str, int] = {}
        self.baselines: set[str] = set()
        self._find_keys()

    def __getitem__(self, key: str) -> SweepPoint:
        index = self._indices[key]
        if index >= 0:
            return self._study.point_at(index)
        baseline = self._study.baseline_of(self._study.point_at(~index))
        assert baseline is not None
        return baseline

    def __iter__(self) -> Iterator[str]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)

    def _find_keys(self) -> None:
        keys = PointKeys()
        for index in self._study.indices():
            self._indices.setdefault(keys.key_of(self._study.point_at(index)), index)
        if self._study.baseline is None:
            return
        for index in list(self._indices.values()):
            baseline = self._study.baseline_of(self._study.point_at(index))
            key = None if baseline is None else keys.key_of(baseline)
            if key is not None and key not in self._indices:
                self._indices[key] = ~index
                self.baselines.add(key)
