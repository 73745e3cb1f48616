"""Simulates one point and stores its result, in whichever process: this one, or a worker's."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from buddysim.base.boundary import ending, inside
from buddysim.base.errors import BuddysimError
from buddysim.base.result import peak_rss_bytes
from buddysim.sweep import memory_grants
from buddysim.sweep.point import from_spec
from buddysim.sweep.store import FullStoreError, Store
from buddysim.sweep.stored_result import make_record

#: Why a point has no result.
REFUSED, MEMORY, BUG, KILLED, FULL = "refused", "out of memory", "error", "killed", "store full"

Outcome = dict[str, Any]


def run_point(
    spec: Mapping[str, Any], folder: str, grant_bytes: int | None = None, waiting: Callable[[str], object] | None = None
) -> Outcome:
    """Simulates a point and stores its result; never raises, so that a failure is one of the point, not of the worker.

    Parameters
    ----------
    spec : a `Point.spec`
    folder : of the store
    grant_bytes : memory that it may take; None: as much as there is
    waiting : as `Store.put` has it

    Returns
    -------
    dict with `key`, `worker`, `seconds` of `simulate`, and `busy_s` in all; where it failed `why` (`REFUSED`,
    `MEMORY`, `BUG`, `FULL`) and `reason`, a line
    """
    began = time.perf_counter()
    outcome: Outcome = {"key": spec["key"], "worker": f"{socket.gethostname()}:{os.getpid()}", "seconds": 0.0}

    def run() -> Outcome:
        point = from_spec(spec)
        if point.key != spec["key"]:
            raise BuddysimError("what it reads has changed since the sweep began")
        memory_grants.reset_peak()
        with memory_grants.limited(grant_bytes):
            started = time.perf_counter()
            result = point.sweep_engine.simulate(point.settings)
            outcome["seconds"] = time.perf_counter() - started
        record = make_record(point, result, outcome["seconds"], peak_rss_bytes())
        outcome["bytes"] = Store(Path(folder)).put(record, waiting=waiting)
        outcome["peak_rss_bytes"] = record.measured["peak_rss_bytes"]
        return {}

    outcome |= inside(run, lambda error: failure(error, grant_bytes))
    outcome["busy_s"] = time.perf_counter() - began
    return outcome


def failure(error: BaseException, grant_bytes: int | None) -> Outcome:
    """Return `why` and `reason` of a point that an error ended."""
    if isinstance(error, FullStoreError):
        return {"why": FULL, "reason": str(error)}
    if isinstance(error, BuddysimError):
        return {"why": REFUSED, "reason": str(error)}
    if isinstance(error, MemoryError):
        limit = "" if grant_bytes is None else f" with {grant_bytes / 2**20:,.0f} MiB for it"
        return {"why": MEMORY, "reason": f"out of memory{limit}{f': {error}' if str(error) else ''}"}
    return {"why": BUG, "reason": ending(error).line.removeprefix("error: ")}
