"""What each assumed value of a machine decides: a scheme's slowdown with other values, as points of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from buddysim.machine.assumptions import Assumption
from buddysim.sweep.axis import Value
from buddysim.sweep.engines.replay import NAME, TIME
from buddysim.sweep.point import SweepPoint
from buddysim.sweep.store import Store
from buddysim.sweep.study import Study


@dataclass(frozen=True)
class Decided:
    """The slowdowns of a scheme with the values of one key.

    Attributes
    ----------
    assumption : the key
    slowdowns : against the baseline on the same machine, by value; the value of the machine first
    """

    assumption: Assumption
    slowdowns: Mapping[str, float]

    @property
    def least(self) -> str:
        """The value with which the scheme does best."""
        return min(self.slowdowns, key=self.slowdowns.__getitem__)

    @property
    def largest(self) -> str:
        """The value with which the scheme does worst."""
        return max(self.slowdowns, key=self.slowdowns.__getitem__)

    @property
    def span(self) -> float:
        """The largest slowdown over the least."""
        return self.slowdowns[self.largest] / self.slowdowns[self.least]


def study_of(settings: Mapping[str, Value], assumptions: Iterable[Assumption]) -> Study:
    """Return the study of a point: it, and it with each alternative value, each with its baseline.

    Parameters
    ----------
    settings : of the point: trace, machine, scheme, changed keys
    """
    changed = [{**settings, one.key: text} for one in assumptions for text in one.alternatives]
    return Study(NAME, "assumptions", [[dict(settings), *changed]], baseline={})


def decided(settings: Mapping[str, Value], assumptions: Iterable[Assumption], store: Store) -> list[Decided]:
    """Return what each assumption decides, most first; values without a result in the store are left out.

    Parameters
    ----------
    settings, assumptions : of `study_of`, whose results are in the store
    """
    times: dict[str, float | None] = {}

    def time(point: SweepPoint | None) -> float | None:
        assert point is not None
        if point.key not in times:
            record = store.get(point.key)
            times[point.key] = None if record is None else record.row[TIME]
        return times[point.key]

    rows = []
    for one in assumptions:
        slowdowns = {}
        for text in (one.value, *one.alternatives):
            point = SweepPoint(NAME, dict(settings) if text == one.value else {**settings, one.key: text})
            own, baseline = time(point), time(point.baseline)
            if own and baseline:
                slowdowns[text] = own / baseline
        if slowdowns:
            rows.append(Decided(one, slowdowns))
    return sorted(rows, key=lambda each: -each.span)
