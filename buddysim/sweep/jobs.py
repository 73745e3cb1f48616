"""Workers in the jobs of a batch system, as a TOML file describes them (dask-jobqueue)."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.schema import Filled, Schema, checked
from buddysim.base.textfile import parse_toml, read_text

LARGEST_FILE = 2**16
_LOOPBACK = "127.0.0.1"
_LOGS = {"-e": "err", "-o": "out"}


@dataclass(frozen=True)
class Jobs:
    """The resources of each job.

    Attributes
    ----------
    system : ``slurm``; ``local`` runs the job scripts on this machine, to try a file
    jobs : number of jobs
    workers : processes per job, with one CPU each
    memory : memory of each job, such as ``"64 GB"``
    walltime : time limit of each job, ``"02:00:00"``
    queue, account : names in the batch system; None: its default
    log_folder : folder of the jobs' output; None: the working folder
    interface : network interface on which the scheduler and the workers listen, such as ``"ib0"``; None, of ``local``
        alone: this computer's own
    prologue : shell lines before the workers start: modules, an environment
    directives : further directives of the batch system, such as ``"--exclusive"``
    local_folder : folder of the worker's own files; None: Dask's default
    """

    jobs: int
    memory: str
    system: str = "slurm"
    workers: int = 1
    walltime: str = "01:00:00"
    queue: str | None = None
    account: str | None = None
    log_folder: str | None = None
    interface: str | None = None
    prologue: tuple[str, ...] = ()
    directives: tuple[str, ...] = field(default=())
    local_folder: str | None = None

    @property
    def text(self) -> str:
        """Description for the screen."""
        return f"{self.jobs} {self.system} jobs of {self.workers} worker{'s' if self.workers > 1 else ''}"


class JobsFile(Schema):
    """The keys of a file of jobs."""

    jobs: Annotated[int, Field(ge=1)]
    memory: Filled
    system: Literal["slurm", "local"] = "slurm"
    workers: Annotated[int, Field(ge=1)] = 1
    walltime: Filled = "01:00:00"
    queue: Filled | None = None
    account: Filled | None = None
    log_folder: Filled | None = None
    interface: Filled | None = None
    prologue: list[str] = Field(default_factory=list)
    directives: list[str] = Field(default_factory=list)
    local_folder: Filled | None = None


@within_budget
def read_jobs(path: str | os.PathLike[str]) -> Jobs:
    """The jobs of a file.

    Raises
    ------
    BuddysimError
        an unknown key, with the nearest; one that is missing; a value of another type
    """
    where = os.fspath(path)
    file = checked(JobsFile, parse_toml(read_text(path, "file of jobs", LARGEST_FILE), where), where)
    if file.system == "slurm" and file.interface is None:
        raise BuddysimError(f"{where}: interface is missing: expected the network of the jobs alone, such as ib0: "
                            "whoever reaches the scheduler runs code as you")  # fmt: skip
    lists = {"prologue": tuple(file.prologue), "directives": tuple(file.directives)}
    return Jobs(**{**file.model_dump(), **lists})


def job_cluster(jobs: Jobs, security: Any) -> Any:
    """Submit the jobs and return their Dask cluster, with which they end."""
    if jobs.log_folder is not None:
        Path(jobs.log_folder).mkdir(parents=True, exist_ok=True)
    cluster = make_cluster(jobs, security)
    cluster.scale(jobs=jobs.jobs)
    return cluster


def make_cluster(jobs: Jobs, security: Any) -> Any:
    """Return the cluster before anything is submitted; `job_script` has the script.

    Parameters
    ----------
    security : the certificates of the run (`certificates.RunCertificates.security`)
    """
    import dask_jobqueue
    from dask_jobqueue.local import LocalCluster

    options: dict[str, Any] = {
        "cores": jobs.workers,
        "processes": jobs.workers,
        "memory": jobs.memory,
        "python": shlex.quote(sys.executable),
        "security": security,
        "job_script_prologue": list(jobs.prologue),
        "worker_extra_args": ["--preload", "buddysim.sweep.worker"],
    }
    # Without an interface, Dask listens on all of them, and the dashboard always does.
    listens = {"host": _LOOPBACK} if jobs.interface is None else {"interface": jobs.interface}
    options["scheduler_options"] = {"dashboard_address": f"{_LOOPBACK}:0", **listens}
    options |= _without_none({"interface": jobs.interface})
    if jobs.local_folder is not None:
        options["local_directory"] = shlex.quote(jobs.local_folder)
    if jobs.system == "local":
        return LocalCluster(**options, **_without_none({"log_directory": jobs.log_folder}))
    options |= _without_none({"queue": jobs.queue, "account": jobs.account, "walltime": jobs.walltime})
    return dask_jobqueue.SLURMCluster(job_extra_directives=[*jobs.directives, *_log_directives(jobs)], **options)


def _log_directives(jobs: Jobs) -> list[str]:
    """Where Slurm writes the jobs' output, quoted: dask-jobqueue's own directives end at a blank."""
    if jobs.log_folder is None:
        return []
    return [f"{option} {shlex.quote(f'{jobs.log_folder}/dask-worker-%J.{end}')}" for option, end in _LOGS.items()]


def _without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
