"""The plan of a study: its points by key, and those without a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.sweep.planned_points import PlannedPoints
from buddysim.sweep.store import Store
from buddysim.sweep.study import MANY, Study

if TYPE_CHECKING:
    from buddysim.sweep.query import ResultTable


@dataclass
class SweepPlan:
    """The points of a study, and the points that a store lacks.

    Attributes
    ----------
    study, store : the parameters
    points : every point of the study by its key, in order, each once
    missing : keys of points without a result, in order
    """

    study: Study
    store: Store
    points: PlannedPoints
    missing: list[str] = field(default_factory=list)

    @property
    def n_stored(self) -> int:
        """Points that have a result."""
        return len(self.points) - len(self.missing)

    @cached_property
    def table(self) -> ResultTable | None:
        """The rows that the store had when the plan was made; None without the index, or where there were none."""
        from buddysim.sweep.index import installed
        from buddysim.sweep.query import ResultTable

        if not installed() or (self.store.index is not None and not self.store.index.files()):
            return None
        try:
            return ResultTable(self.store, self.store.index)
        except BuddysimError:  # no results
            return None

    def check_machines(self) -> None:
        """Refuses machines of missing points whose parts don't fit together, before anything is simulated."""
        seen = set()
        for name in self.missing:
            point = self.points[name]
            key = tuple(item for item in point.settings.items() if item[0] == "machine" or "." in item[0])
            if key not in seen:
                seen.add(key)
                point.sweep_engine.check_machine(point.settings)


def make_plan(
    study: Study, store: Store, rerun: bool = False, confirm: Callable[[int], bool] | None = None
) -> SweepPlan:
    """Return the plan of a study.

    Parameters
    ----------
    rerun : whether points with a result count as missing, too
    confirm : called with a number of points above a million; returns whether to continue; None: no

    Raises
    ------
    BuddysimError
        a study that is too large, or without points
    """
    if study.product > MANY and not (confirm is not None and confirm(study.product)):
        raise BuddysimError(f"{study.title}: {study.product:,} points, more than {MANY:,}: expected --yes to go on")
    points = PlannedPoints(study)
    if not points:
        raise BuddysimError(f"{study.title}: no points: every one is excluded")
    stored = set() if rerun else store.verified(points)
    return SweepPlan(study, store, points, [name for name in points if name not in stored])
