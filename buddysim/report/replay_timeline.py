"""A replay's timeline in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

One process per scheme; in it the kernels, on as many threads as run at once, and counters of the traffic of device
memory and link. A kernel's bytes are spread over its time. Times in the file are microseconds, as the format asks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from buddysim.base.output import write_text
from buddysim.compress import SECTOR_BYTES

PS_PER_US = 10**6
_GB_PER_S = 1000  # bytes per ps
#: Counters by their names: columns of a kernel by direction, and bytes of one.
COUNTERS = {
    "DRAM, GB/s": ({"read": "device_read_sectors", "write": "device_write_sectors"}, SECTOR_BYTES),
    "link, GB/s": ({"read": "link_read_bytes", "write": "link_write_bytes"}, 1),
}

Flat = Mapping[str, Any]


def trace_events(results: Mapping[str, Flat]) -> dict[str, Any]:
    """Return the document.

    Parameters
    ----------
    results : what `ReplayResult.to_dict` gives, by scheme name
    """
    events: list[dict[str, Any]] = []
    for pid, (scheme, result) in enumerate(results.items()):
        run = result["provenance"]
        title = f"{scheme}: {run['trace']} on {run['machine']}"
        events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": title}})
        events += _kernels(pid, result["per_kernel"])
        events += _traffic(pid, result["per_kernel"])
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def write_timeline(path: str | os.PathLike[str], results: Mapping[str, Flat]) -> None:
    """Write the document, whole or not at all."""
    write_text(path, json.dumps(trace_events(results), separators=(",", ":"), allow_nan=False) + "\n")


def _kernels(pid: int, kernels: Sequence[Flat]) -> Iterator[dict[str, Any]]:
    """Each kernel on the first thread that is free at its launch."""
    free_ps: list[int] = []
    for kernel in sorted(kernels, key=lambda kernel: (kernel["launch_ps"], kernel["index"])):
        start, end = kernel["launch_ps"], kernel["launch_ps"] + kernel["time_ps"]
        thread = next((number for number, free in enumerate(free_ps) if free <= start), len(free_ps))
        free_ps[thread:] = [end, *free_ps[thread + 1 :]]
        yield {
            "ph": "X", "name": kernel["name"], "cat": "kernel", "pid": pid, "tid": thread,
            "ts": start / PS_PER_US, "dur": kernel["time_ps"] / PS_PER_US,
            "args": {key: value for key, value in kernel.items() if key != "name"},
        }  # fmt: skip
    for thread in range(len(free_ps)):
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "args": {"name": "kernels"}}


def _traffic(pid: int, kernels: Sequence[Flat]) -> Iterator[dict[str, Any]]:
    """Rates between two instants at which a kernel begins or ends: the sum of those that run."""
    waiting = sorted((one for one in kernels if one["time_ps"]), key=lambda one: -int(one["launch_ps"]))
    running: list[Flat] = []
    for at in sorted({at for one in waiting for at in (one["launch_ps"], one["launch_ps"] + one["time_ps"])}):
        while waiting and waiting[-1]["launch_ps"] <= at:
            running.append(waiting.pop())
        running = [one for one in running if at < one["launch_ps"] + one["time_ps"]]
        for name, (columns, unit_bytes) in COUNTERS.items():
            rates = {
                direction: _GB_PER_S * unit_bytes * sum(one[column] / one["time_ps"] for one in running)
                for direction, column in columns.items()
            }
            yield {"ph": "C", "name": name, "pid": pid, "ts": at / PS_PER_US, "args": rates}
