"""The points of a study by their keys, each made when it is asked for: a plan keeps a key and a number of each."""

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
        #: The place of a point in the product of the axes; of a baseline, ~ the place of a point that it belongs to.
        self._places: dict[str, int] = {}
        self.baselines: set[str] = set()
        self._find_keys()

    def __getitem__(self, key: str) -> SweepPoint:
        place = self._places[key]
        if place >= 0:
            return self._study.point_at(place)
        baseline = self._study.baseline_of(self._study.point_at(~place))
        assert baseline is not None
        return baseline

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _find_keys(self) -> None:
        keys = PointKeys()
        for place in self._study.places():
            self._places.setdefault(keys.key_of(self._study.point_at(place)), place)
        if self._study.baseline is None:
            return
        for place in list(self._places.values()):
            baseline = self._study.baseline_of(self._study.point_at(place))
            key = None if baseline is None else keys.key_of(baseline)
            if key is not None and key not in self._places:
                self._places[key] = ~place
                self.baselines.add(key)
