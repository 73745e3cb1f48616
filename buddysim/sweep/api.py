"""`buddysim.run_sweep(...)`: runs a study from Python, in this process or on workers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from buddysim.base import signals
from buddysim.base.errors import BuddysimError
from buddysim.base.host_memory import memory_available
from buddysim.sweep import cluster, memory_grants
from buddysim.sweep.certificates import RunCertificates, can_be_made
from buddysim.sweep.estimate import Estimate
from buddysim.sweep.plan import SweepPlan, make_plan
from buddysim.sweep.point import SweepPoint
from buddysim.sweep.runner import EventHandler, Executor, Runner, SerialExecutor, SweepSummary
from buddysim.sweep.store import Store
from buddysim.sweep.stored_result import StoredResult
from buddysim.sweep.study import Study, StudyReader
from buddysim.sweep.study_file import read_study

Path = str | os.PathLike[str]


@dataclass
class Results:
    """The results of a study, in the order of its points.

    Attributes
    ----------
    plan : the study, and what was missing when it began
    summary : how the run went
    """

    plan: SweepPlan
    summary: SweepSummary

    def __len__(self) -> int:
        return len(self.plan.points) - len(self.plan.points.baselines)

    def __iter__(self) -> Iterator[StoredResult]:
        for _, record in self._stored_points():
            yield record

    def rows(self) -> list[dict[str, Any]]:
        """A row for each point that has a result: settings, figures of the machine, counters; in base units.

        Times against the baseline's are there where the baseline has a result.
        """
        times: dict[str, float | None] = {}
        return [self._row(point, record, times) for point, record in self._stored_points()]

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.rows())

    def to_arrow(self) -> Any:
        """The rows as a pyarrow Table; what a row lacks is null."""
        import pyarrow

        from buddysim.sweep.rows import rows_table

        lines = [json.dumps(row).encode() for row in self.rows()]
        return rows_table(lines) if lines else pyarrow.table({})

    def _stored_points(self) -> Iterator[tuple[SweepPoint, StoredResult]]:
        for name, point in self.plan.points.items():
            if name not in self.plan.points.baselines:
                record = self.plan.store.get(name)
                if record is not None:
                    yield point, record

    def _row(self, point: SweepPoint, record: StoredResult, times: dict[str, float | None]) -> dict[str, Any]:
        engine, row = point.sweep_engine, dict(record.row)
        if engine.AGAINST is None:
            return row
        baseline = self.plan.study.baseline_of(point)
        assert baseline is not None
        if baseline.key not in times:
            baseline_record = self.plan.store.get(baseline.key)
            times[baseline.key] = None if baseline_record is None else baseline_record.row[engine.TIME]
        time = times[baseline.key]
        return row | {engine.AGAINST: row[engine.TIME] / time if time else None}


def run_sweep(
    study: Study | Path | None = None,
    *,
    store: Store | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    slurm: Path | None = None,
    rerun: bool = False,
    on_event: EventHandler | None = None,
    yes: bool = False,
    **tables: Any,
) -> Results:
    """Simulate the points of a study that have no result, and return the results of all points.

    Parameters
    ----------
    study : a study, or the path of a study file; None: `tables` have it
    store : a store or its folder; None: ``BUDDYSIM_STORE``, else ``out/store``
    workers : processes on this machine; 1: this process alone, without Dask; None: one for each CPU
    scheduler : address of a Dask scheduler, ``tcp://host:port``, instead of workers on this machine
    slurm : a file that describes Slurm jobs (docs/how-to/run-on-a-cluster.md), instead of workers on this machine
    rerun : simulates points that have a result again
    on_event : called with every event, a dict
    yes : accepts more than a million points
    tables : as in a study file: ``grid={"scheme": ["buddy", "pinned-host"]}``, ``set={...}``, ``zip=...``,
        ``list=...``, ``exclude=...``, ``baseline=...``, ``engine=...``

    Raises
    ------
    BuddysimError
        a wrong study, a store that can't be written, a scheduler that doesn't answer. A point that fails raises
        nothing: it is among ``summary.failures``
    """
    if isinstance(study, Study):
        made = study
    else:
        made = read_study(study) if study is not None else StudyReader("run_sweep").read(tables)
    result_store = store if isinstance(store, Store) else Store.at(store)
    plan = make_plan(made, result_store, rerun, lambda count: yes)
    heard = on_event or (lambda event: None)
    return Results(plan, run(plan, executor_maker(workers, scheduler, slurm), heard))


Maker = Callable[[SweepPlan, Callable[[str], object]], Executor]


def run(plan: SweepPlan, make: Maker, on_event: EventHandler) -> SweepSummary:
    """Run the missing points of a plan; start no workers if there are none."""
    if not plan.missing:
        return SweepSummary()
    plan.store.check_writable()
    plan.check_machines()
    estimate = Estimate(measured(plan))
    with signals.deferred():
        executor = make(plan, lambda text: on_event({"event": "waiting", "reason": text}))
        try:
            with signals.undeferred():
                dashboard = getattr(executor, "dashboard", None)
                on_event({"event": "running", "where": executor.text, "dashboard": dashboard})
                return Runner(plan, executor, estimate, on_event).run()
        finally:
            executor.close()


def measured(plan: SweepPlan) -> list[Mapping[str, Any]]:
    """Return the measured times and memory of the store's results of this engine; empty without the index."""
    if plan.table is None:
        return []
    query = (
        "SELECT engine, content, scheme, avg(seconds) AS seconds, max(peak_rss_bytes) AS peak_rss_bytes "
        f"FROM results WHERE engine = '{plan.study.engine}' GROUP BY ALL"
    )
    rows: list[Mapping[str, Any]] = plan.table.sql(query).to_pylist()
    return rows


def executor_maker(workers: int | None = None, scheduler: str | None = None, slurm: Path | None = None) -> Maker:
    """Return the runner of the points (`run_sweep` describes the parameters).

    Raises
    ------
    BuddysimError
        a number of workers below 1, more than one of the parameters, a wrong address, or Dask is not installed
    """
    if sum(option is not None for option in (workers, scheduler, slurm)) > 1:
        raise BuddysimError("workers, scheduler, slurm: expected one of them")
    if scheduler is not None:
        cluster.check_installed("--scheduler")
        cluster.check_address(scheduler)
        return lambda plan, waiting: cluster.Cluster(
            str(plan.store.folder), lambda: scheduler, f"of the Dask scheduler {scheduler}", None, waiting
        )
    if slurm is not None:
        from buddysim.sweep.jobs import job_cluster, read_jobs

        jobs = read_jobs(slurm)

        def of_jobs(plan: SweepPlan, waiting: Callable[[str], object]) -> Executor:
            certificates = RunCertificates(plan.store.folder)
            make = partial(job_cluster, jobs, certificates.security_of_jobs())
            return cluster.Cluster(str(plan.store.folder), make, jobs.text, None, waiting, certificates)

        return of_jobs
    if workers is not None and workers < 1:
        raise BuddysimError(f"workers {workers}: expected 1 or more")
    return lambda plan, waiting: _local(workers, plan, waiting)


def _local(workers: int | None, plan: SweepPlan, waiting: Callable[[str], object]) -> Executor:
    count = workers or len(os.sched_getaffinity(0))
    folder = str(plan.store.folder)
    if workers is not None and workers > 1:
        cluster.check_installed(f"--workers {workers}")
    if count == 1 or len(plan.missing) == 1:
        return SerialExecutor(folder, waiting)
    if not cluster.installed():
        return SerialExecutor(folder, waiting, "1 (in this process; more need pip install 'buddysim[sweep]')")
    if workers is None and not can_be_made():
        return SerialExecutor(folder, waiting, "1 (in this process; more need apt install openssl)")
    count = min(count, len(plan.missing))
    max_bytes = int(memory_available() * memory_grants.FRACTION)
    text = f"{count} (processes on this machine)"
    certificates = RunCertificates(plan.store.folder)  # else every user of this computer could run code as this one
    return cluster.Cluster(
        folder, lambda: cluster.local_cluster(count, certificates.security()), text, max_bytes, waiting, certificates
    )
