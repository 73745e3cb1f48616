"""Results that figures and comparisons ask for one by one: from the store, else simulated here and stored."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from buddysim.base.result import peak_rss_bytes
from buddysim.sweep.engines import find
from buddysim.sweep.point import SweepPoint
from buddysim.sweep.store import Store
from buddysim.sweep.stored_result import StoredResult, make_record, read_record
from buddysim.sweep.study import StudyReader

Result = Mapping[str, Any]


class SavedResults:
    """Results of either engine, of which each is simulated once.

    Parameters
    ----------
    store : where they are; None keeps them in memory only
    rerun : simulates points that have a result again

    Attributes
    ----------
    simulated : number of simulations so far
    """

    def __init__(self, store: Store | None = None, rerun: bool = False) -> None:
        self.store, self.rerun = store, rerun
        self.simulated = 0
        self._known: dict[str, Result] = {}

    def training_results(
        self, network: str, batch: int, schemes: Iterable[str], machine: str = "titan-x", **options: Any
    ) -> dict[str, Result]:
        """The results of some training schemes, by name, as ``train --json`` writes them.

        Parameters
        ----------
        options : as for `buddysim.training.simulate`

        Raises
        ------
        BuddysimError
            a store that can't be read or written; whatever `buddysim.training.simulate` refuses
        """
        settings = {"network": network, "batch": batch, "machine": machine, **options}
        return {scheme: self.result_of("training", {**settings, "scheme": scheme}) for scheme in schemes}

    def result(self, network: str, batch: int, scheme: str, machine: str = "titan-x", **options: Any) -> Result:
        """The result of one training scheme."""
        return self.training_results(network, batch, (scheme,), machine, **options)[scheme]

    def replay_results(
        self,
        trace: str | os.PathLike[str],
        schemes: Iterable[str],
        machine: str | os.PathLike[str] = "p100-nvlink2",
        **options: Any,
    ) -> dict[str, Result]:
        """The results of some replay schemes, by name, as ``run --json`` writes them.

        Parameters
        ----------
        options : as for `buddysim.simulate`
        """
        settings = {"trace": os.fspath(trace), "machine": os.fspath(machine), **options}
        return {scheme: self.result_of("replay", {**settings, "scheme": scheme}) for scheme in schemes}

    def result_of(self, engine: str, settings: Mapping[str, Any]) -> Result:
        """The result of a point, from what a user may write in a study."""
        point = self.point(engine, settings)
        result = None if self.rerun and point.key not in self._known else self.stored(point)
        if result is None:
            result = self._known[point.key] = self._simulate(point).result
        return result

    def point(self, engine: str, settings: Mapping[str, Any]) -> SweepPoint:
        """The point of what a user may write in a study."""
        content = {"engine": engine, "set": {name: value for name, value in settings.items() if value is not None}}
        (point,) = StudyReader(find(engine).NAME).read(content).points()
        return point

    def stored(self, point: SweepPoint) -> Result | None:
        """The result of a point; None where the store has none."""
        if point.key not in self._known:
            result = None if self.store is None else self.store.get(point.key)
            if result is None:
                return None
            self._known[point.key] = result.result
        return self._known[point.key]

    def _simulate(self, point: SweepPoint) -> StoredResult:
        began = time.perf_counter()
        result = point.sweep_engine.simulate(point.settings)
        record = make_record(point, result, time.perf_counter() - began, peak_rss_bytes())
        self.simulated += 1
        if self.store is not None:
            self.store.check_writable()
            self.store.put(record)
        return read_record(record.to_bytes(), point.key)  # the value that a later read returns, bit for bit
