"""Set-up of a Dask worker of a sweep."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from buddysim.base.boundary import ending, inside
from buddysim.base.result import software
from buddysim.replay import schemes
from buddysim.sweep import cluster  # noqa: F401 - what the scheduler sends refers to it
from buddysim.sweep.engines import NAMES, find
from buddysim.sweep.stored_result import sources_checksum


def dask_setup(worker: Any) -> None:
    """Load all that points need, so that none waits for it; a worker that can't do so ends with one line."""
    inside(_load_all, _end_worker)


def _end_worker(error: BaseException) -> NoReturn:
    os._exit(ending(error).tell())  # Dask would print a traceback and go on


def _load_all() -> None:
    for name in NAMES:
        find(name)
        sources_checksum(name)
    schemes.REGISTRY.names()
    software()
