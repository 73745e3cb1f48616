"""Points on the workers of a Dask cluster: started by this process, already running, or made of batch jobs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import queue
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from buddysim.base.boundary import inside
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.signals import deferred, without_signals, without_terminal
from buddysim.sweep import memory_grants
from buddysim.sweep.certificates import RunCertificates
from buddysim.sweep.execute import BUG, KILLED, MEMORY, Outcome, failure, run_point
from buddysim.sweep.runner import PointTask

#: A scheduler that doesn't answer within this is reported.
ANSWER_S = 5
_SLOTS_EVERY_S = 1.0
_LOST_S = 30
_STARTS = 5
WAITING_TOPIC = "buddysim-waiting"
#: Start of the name of Dask's worker processes.
_WORKER = "Dask Worker process"
_LOGGERS = ("distributed", "tornado", "asyncio", "bokeh", "dask_jobqueue")

#: What Dask raises where a scheduler has ended: errors of many classes, that of a cancelled coroutine too.
_OF_DASK = (Exception, asyncio.CancelledError)

_SETTINGS = {
    # A death is this command's to judge: it knows what the point was and how often that happened.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.comm.timeouts.connect": f"{ANSWER_S}s",
    # A point that waits does so at the scheduler: the death of a worker costs one, and tells which.
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.log-length": 100,
    # The scheduler shares the machine with its workers: 50 looks a second at its own health take 3 % of a CPU.
    "distributed.admin.tick.interval": "5s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.preload": ["buddysim.sweep.worker"],
}


def installed() -> bool:
    """Return whether Dask is installed."""
    from importlib.util import find_spec

    return find_spec("distributed") is not None


def check_installed(what: str) -> None:
    """A BuddysimError that names what to install where Dask is missing."""
    if not installed():
        raise BuddysimError(f"{what} needs Dask, which is not installed: pip install 'buddysim[sweep]'")


def check_address(scheduler: str) -> None:
    """A BuddysimError where that is no address of a scheduler."""
    try:
        parts = urlsplit(scheduler)
        whole = bool(parts.scheme and parts.hostname and parts.port)
    except ValueError:  # a port that is no number
        whole = False
    if not whole:
        raise BuddysimError(f"--scheduler {shortened(scheduler)}: expected an address, tcp://HOST:PORT")


class Cluster:
    """An executor (`runner.Executor`) on a Dask cluster.

    Parameters
    ----------
    folder : of the store
    make : gives the cluster, or the address of its scheduler
    text : what it is, for the screen
    memory_bytes : of one machine for all points that run at once; None if workers are on several
    waiting : called with what a worker waits for
    certificates : of the run; they end with it
    """

    def __init__(
        self,
        folder: str,
        make: Callable[[], Any],
        text: str,
        memory_bytes: int | None,
        waiting: Callable[[str], object],
        certificates: RunCertificates | None = None,
    ) -> None:
        import dask
        from distributed import Client

        self.text, self.memory_bytes = text, memory_bytes
        self._folder, self._waiting = folder, waiting
        self._ended: queue.SimpleQueue[tuple[PointTask, Any]] = queue.SimpleQueue()
        self._slots, self._submitted, self._counted_s, self._lost_s = 0, 0, 0.0, 0.0
        self._futures: dict[str, Any] = {}
        self._killed = memory_grants.killed_for_memory()
        _silence()
        dask.config.set(_SETTINGS)
        self._earlier = {process.pid for process in multiprocessing.active_children()}
        self._cluster: Any = None
        self._client: Any = None
        made: Any = None
        self._certificates = certificates
        try:
            made = _made(make, text)
            self._cluster = None if isinstance(made, str) else made
            self._client = Client(made, timeout=ANSWER_S, set_as_default=False)
            self._client.subscribe_topic(WAITING_TOPIC, lambda event: waiting(str(event[1])))
        except BaseException as error:
            self.close()
            is_elsewhere = self._client is not None or isinstance(made, str)
            of_dask = _OF_DASK if is_elsewhere else (OSError, ValueError)
            if isinstance(error, BuddysimError) or not isinstance(error, of_dask):
                raise
            raise BuddysimError(f"workers {text}: the scheduler does not answer within {ANSWER_S} s: {error}") from None

    @property
    def dashboard(self) -> str | None:
        """Address of Dask's dashboard; None where it can't be shown."""
        from importlib.util import find_spec

        if find_spec("bokeh") is None:
            return None
        with self._answers():
            return str(self._client.dashboard_link)

    def slots(self) -> int:
        """Threads of all workers, counted once a second."""
        if time.monotonic() - self._counted_s > _SLOTS_EVERY_S or not self._slots:
            self._counted_s = time.monotonic()
            n_threads = 0
            with deferred(), contextlib.suppress(*_OF_DASK):
                n_threads = sum(self._client.nthreads().values())
            if n_threads:
                self._slots, self._lost_s = n_threads, 0.0
        return self._slots

    def ahead(self) -> int:
        """See `runner.Executor`: none at a scheduler with settings of its own, which may give a worker two at once.

        Dask keeps tasks at the scheduler once a group of them is larger than two for each thread.
        """
        own = self._cluster is not None
        return self._slots if own and self._submitted > 2 * self._slots else 0

    def submit(self, task: PointTask, spec: Mapping[str, Any]) -> None:
        """Start a point, if possible on a worker on which it has not failed."""
        self._submitted += 1
        with self._answers():
            future = self._client.submit(
                run_remotely, dict(spec), self._folder, task.grant_bytes, workers=self._others(task),
                key=f"point-{task.key}-{task.tries}-{task.deaths}-{time.monotonic_ns()}", pure=False,
            )  # fmt: skip
            self._futures[task.key] = future
            future.add_done_callback(lambda done: self._ended.put((task, done)))

    def finished(self, timeout_s: float) -> Iterator[tuple[PointTask, Outcome]]:
        """See `runner.Executor`."""
        with contextlib.suppress(queue.Empty):
            task, future = self._ended.get(timeout=timeout_s)
            yield task, self._outcome(task, future)
            while True:
                task, future = self._ended.get_nowait()
                yield task, self._outcome(task, future)
        self._check_alive()

    def close(self) -> None:
        """Ends the workers that this process started; others finish the point that they are at."""
        with contextlib.suppress(Exception):
            self._client.cancel(list(self._futures.values()), force=True)
        with contextlib.suppress(Exception):
            self._client.close(timeout=ANSWER_S)
        self._close_cluster()

    def _close_cluster(self) -> None:
        if self._certificates is not None:
            self._certificates.close()
        if self._cluster is not None:
            with contextlib.suppress(Exception):
                self._cluster.close(timeout=ANSWER_S)
            self._cluster = None
            for process in multiprocessing.active_children():  # a worker that was about to start again
                if process.name.startswith(_WORKER) and process.pid not in self._earlier:
                    process.kill()
                    process.join(ANSWER_S)

    def _others(self, task: PointTask) -> list[str] | None:
        if not task.failed_on:
            return None
        with contextlib.suppress(Exception):
            names = self._client.run(worker_name)
            others = [address for address, name in names.items() if name not in task.failed_on]
            return others or None
        return None

    def _outcome(self, task: PointTask, future: Any) -> Outcome:
        from distributed.scheduler import KilledWorker

        self._futures.pop(task.key, None)
        try:
            with deferred():
                return future.result(timeout=_LOST_S)  # type: ignore[no-any-return]
        except KilledWorker:
            return self._death(task)
        except _OF_DASK as error:  # not of the point: `run_point` raises none
            if type(error).__name__ in ("CancelledError", "FutureCancelledError", "TimeoutError", "CommClosedError"):
                return {"key": task.key, "why": KILLED, "reason": "its worker was lost"}
            return {"key": task.key, "why": BUG, "reason": " ".join(f"{type(error).__name__}: {error}".split())}

    def _death(self, task: PointTask) -> Outcome:
        killed = memory_grants.killed_for_memory()
        if self.memory_bytes is not None and killed > self._killed:
            self._killed = killed
            return {"key": task.key, "why": MEMORY, "reason": "the kernel ended its worker because memory ran out"}
        return {"key": task.key, "why": KILLED, "reason": "its worker was killed"}

    def _check_alive(self) -> None:
        """Refuse to wait for a scheduler that has ended."""
        if self._client.status in ("running", "newly-created"):
            self._lost_s = 0.0
            return
        self._lost_s = self._lost_s or time.monotonic()
        if self._client.status in ("closed", "closing") or time.monotonic() - self._lost_s > _LOST_S:
            raise self._scheduler_is_gone()

    @contextlib.contextmanager
    def _answers(self) -> Iterator[None]:
        """Signals wait for the end of the block; any error in it is Dask's, whose scheduler has ended."""
        with deferred():
            try:
                yield
            except _OF_DASK:
                raise self._scheduler_is_gone() from None

    def _scheduler_is_gone(self) -> BuddysimError:
        return BuddysimError(
            f"workers {self.text}: the scheduler is gone; what is done is in the store, and the same command continues"
        )


def _silence() -> None:
    """Dask's messages are this command's to give: each of its loggers has a level and a handler of its own."""
    for name in [*logging.root.manager.loggerDict]:
        if name.partition(".")[0] in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _made(make: Callable[[], Any], text: str) -> Any:
    """Return what `make` returns; workers that die during their start are started again."""
    for left in reversed(range(_STARTS)):
        try:
            return make()
        except RuntimeError as error:
            if not left:
                raise BuddysimError(f"{text}: can't be started: {' '.join(str(error).split())}") from None
    raise AssertionError


def start_tracker() -> None:
    """Start multiprocessing's process that tracks resources, which no signal to this command may end.

    The processes that outlive it would print tracebacks.
    """
    from multiprocessing import resource_tracker

    with without_signals():
        resource_tracker.ensure_running()


def local_cluster(workers: int, security: Any) -> Any:
    """Worker processes of one thread each on this machine.

    Parameters
    ----------
    security : the certificates of the run (`certificates.RunCertificates.security`)
    """
    from distributed import LocalCluster

    start_tracker()
    with without_terminal():  # after the start of the tracker, which lets some signals through
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            security=security,
            silence_logs=logging.CRITICAL,
        )


def run_remotely(spec: Mapping[str, Any], folder: str, grant_bytes: int | None) -> Outcome:
    """`run_point` on a worker; what it waits for is said to the command."""

    def run() -> Outcome:
        from distributed import get_worker

        worker = get_worker()
        memory_grants.keep_freed_memory()
        # On other machines each worker has a limit of its own.
        grant = grant_bytes if grant_bytes is not None else worker.memory_manager.memory_limit or None
        return run_point(spec, folder, grant, lambda text: worker.log_event(WAITING_TOPIC, text))

    return inside(run, lambda error: {"key": spec["key"], **failure(error, grant_bytes)})


def worker_name() -> str:
    """The name of a worker as outcomes have it."""
    import socket

    return f"{socket.gethostname()}:{os.getpid()}"
