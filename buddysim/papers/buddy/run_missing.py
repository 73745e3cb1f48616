"""Makes the traces and results that the study's figures lack: traces, then analyses and replays, as a sweep."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.papers.buddy.buddy_study import BuddyStudy, NoStoredResults
from buddysim.papers.reported_values import reported_values
from buddysim.papers.simulated_values import simulation_functions
from buddysim.sweep.api import Maker, run
from buddysim.sweep.plan import make_plan
from buddysim.sweep.point import SweepPoint
from buddysim.sweep.runner import EventHandler
from buddysim.sweep.study import Study as SweepStudy
from buddysim.workloads.batch import Order, make_all
from buddysim.workloads.workload_registry import REGISTRY, is_network

#: Pages of 8 KiB of which one keeps its bytes: compressors other than BPC need some. Networks' traces have their sizes.
CONTENTS_EVERY = 64
Say = Callable[[str], object]


def run_missing(
    study: BuddyStudy, requests: Sequence[Callable[[], object]], make: Maker, on_event: EventHandler, say: Say
) -> int:
    """Make the traces and results that some functions request of a study.

    Parameters
    ----------
    requests : each requests from the study all results of a figure
    make : where points are simulated (`buddysim.sweep.api.executor_maker`)
    on_event : called with every event of the sweeps
    say : called with a line before something that takes long

    Returns
    -------
    number of points simulated

    Raises
    ------
    BuddysimError
        traces that can't be made, or points that failed, after all others were tried
    """
    failures = list[str]()
    _collect_missing(study, requests)
    if study.missing_traces:
        try:
            _make_traces(study, say)
        except BuddysimError as error:
            failures.append(f"traces: {error}")
        _collect_missing(study, requests)
    missing, failed = list(study.missing.values()), list[str]()
    study.missing.clear()
    by_engine: dict[str, list[SweepPoint]] = {}
    for point in missing:
        by_engine.setdefault(point.engine, []).append(point)
    assert study.results.store is not None
    for engine, points in by_engine.items():
        say(f"{len(points)} points of the {engine} engine")
        swept = SweepStudy(engine, "figures", [[dict(point.settings) for point in points]])
        summary = run(make_plan(swept, study.results.store), make, on_event)
        failed += [f"{one['point']}: {one['reason']}" for one in summary.failures]
    if failed:
        failures.append(f"{len(failed)} of {len(missing)} points failed; the first: {failed[0]}")
    if failures:
        raise BuddysimError("; ".join(failures))
    return len(missing)


def comparison_requests(study: BuddyStudy) -> list[Callable[[], object]]:
    """Functions that ask a study for all that docs/validation/buddy-paper.md compares, for `run_missing`."""
    measure = simulation_functions()
    return [partial(measure[id], study) for id in reported_values("buddy-paper.md")]  # type: ignore[arg-type]


def _collect_missing(study: BuddyStudy, requests: Sequence[Callable[[], object]]) -> None:
    study.missing.clear()
    study.missing_traces.clear()
    for request in requests:
        with contextlib.suppress(NoStoredResults):
            request()
    others = {key for key in study.missing_traces if key[0] not in study.names()}  # the comparison is of all workloads
    for key in others:
        del study.missing_traces[key]


def _make_traces(study: BuddyStudy, say: Say) -> None:
    Path(study.folder).mkdir(parents=True, exist_ok=True)
    orders = [
        Order(name, study.scale, which, path, 0 if is_network(REGISTRY.find(name)) else CONTENTS_EVERY)
        for (name, which), path in sorted(study.missing_traces.items())
    ]
    say(f"making {len(orders)} traces in {study.folder}")
    for made in make_all(orders):
        say(f"made {made.path.name}")
