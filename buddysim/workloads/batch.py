"""Makes the traces of several workloads in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.workloads.make_workload import MadeWorkload, make_trace_of, needs_of
from buddysim.workloads.needs import Needs, check_free_resources


@dataclass(frozen=True)
class Order:
    """A trace to make: the parameters of `make`."""

    name: str
    scale: str
    which: str
    path: Path
    contents_every: int = 0

    def make(self) -> MadeWorkload:
        return make_trace_of(self.name, self.scale, self.which, self.path, self.contents_every)

    @property
    def needs(self) -> Needs:
        return needs_of(self.name, self.scale, self.which, self.contents_every)


def make_all(orders: Sequence[Order], jobs: int = 1) -> Iterator[MadeWorkload]:
    """Make traces, `jobs` at once, and yield each one as it is complete.

    Raises
    ------
    BuddysimError
            before the first trace: an unknown problem, or too little memory or disk space for `jobs` of them;
            after the last trace: the failures, with their causes
    """
    _check_together(orders, jobs)
    failures = []
    if jobs == 1 or len(orders) == 1:
        for order in orders:
            try:
                yield order.make()
            except BuddysimError as error:
                failures.append(str(error))
    else:
        with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool:
            for future in as_completed([pool.submit(order.make) for order in orders]):
                try:
                    yield future.result()
                except BuddysimError as error:
                    failures.append(str(error))
    if failures:
        raise BuddysimError("; ".join(failures))


def _check_together(orders: Sequence[Order], jobs: int) -> None:
    """Check memory and disk space for all traces without a file, `jobs` at once."""
    missing = [order for order in orders if not order.path.exists()]
    if len(missing) < 2:
        return
    needs = [order.needs for order in missing]
    largest = sorted((need.memory_bytes for need in needs), reverse=True)[:jobs]
    together = Needs(sum(largest), sum(need.disk_bytes for need in needs), sum(need.seconds for need in needs))
    folder = missing[0].path.resolve().parent
    if not folder.is_dir():
        raise BuddysimError(f"{folder}: there is no such folder to write in")
    check_free_resources(f"{len(missing)} workloads, {min(jobs, len(missing))} at once,", together, folder)
