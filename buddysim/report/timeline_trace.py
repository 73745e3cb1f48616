"""An iteration's timeline in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

One process per scheme; in it a thread for each stream, one for the stalls, a counter of the memory held by kind, and a
mark at its peak.
Times in the file are microseconds, as the format asks; `args` has the picoseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from buddysim.base.output import write_text
from buddysim.plotting.memory_kinds import COUNTER, PEAK, label_of
from buddysim.training.iteration.timeline import ALWAYS_SHOWN, COMPUTE, STREAMS
from buddysim.training.outcome import IterationOutcome

PS_PER_US = 10**6
_STALLS = "stalls"
# Names of the format's own palette.
_COLOURS = {
    "forward": "good",
    "backward": "thread_state_runnable",
    "recompute": "bad",
    "encode": "olive",
    "decode": "yellow",
    "update": "black",
}


def trace_events(outcomes: Mapping[str, IterationOutcome]) -> dict[str, Any]:
    """The document, with the schemes in the order given."""
    events: list[dict[str, Any]] = []
    for number, (scheme, outcome) in enumerate(outcomes.items()):
        events += _process(number, scheme, outcome)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def write_trace(path: str | os.PathLike[str], outcomes: Mapping[str, IterationOutcome]) -> None:
    """Writes the document, whole or not at all."""
    text = json.dumps(trace_events(outcomes), separators=(",", ":"), allow_nan=False) + "\n"
    write_text(path, text)


def _process(pid: int, scheme: str, outcome: IterationOutcome) -> Iterator[dict[str, Any]]:
    layers, tasks = outcome.network.layers, outcome.program.tasks
    title = f"{scheme}: {outcome.network.name}, batch {outcome.batch}, {outcome.machine.name}"
    yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": title}}
    used = {record.stream for record in outcome.schedule.records}
    threads = [*(stream for stream in STREAMS if stream in ALWAYS_SHOWN or stream in used), _STALLS]
    for tid, thread in enumerate(threads):
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": thread}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}
    for record in outcome.schedule.records:
        copies = record.stream != COMPUTE
        name = layers[record.layer].name
        task = "" if record.task is None else tasks[record.task].name
        yield {
            "ph": "X",
            "name": (task or f"{record.stream} X of {name}") if copies else f"{name} {record.pass_}",
            "cat": record.stream if copies else record.pass_,
            "cname": "grey" if copies else _COLOURS[record.pass_],
            "pid": pid,
            "tid": threads.index(record.stream),
            "ts": record.start_ps / PS_PER_US,
            "dur": (record.end_ps - record.start_ps) / PS_PER_US,
            "args": {
                "layer": record.layer,
                "pass": record.pass_,
                "start_ps": record.start_ps,
                "end_ps": record.end_ps,
                "bytes": record.byte_count,
            },
        }
    for stall in outcome.schedule.stalls:
        yield {
            "ph": "X",
            "name": f"{layers[stall.layer].name} {stall.pass_}: {stall.cause}",
            "cat": "stall",
            "cname": "terrible",
            "pid": pid,
            "tid": threads.index(_STALLS),
            "ts": stall.start_ps / PS_PER_US,
            "dur": stall.ps / PS_PER_US,
            "args": {"layer": stall.layer, "of": stall.copied_layer, "start_ps": stall.start_ps, "ps": stall.ps},
        }
    yield from _memory(pid, outcome)


def _memory(pid: int, outcome: IterationOutcome) -> Iterator[dict[str, Any]]:
    """What is allocated in each step, by the kinds that occur, and a mark at the peak."""
    times, held = outcome.memory_over_time()
    shown = {label_of(kind, outcome.network.recorded): amounts for kind, amounts in held.items() if any(amounts)}
    for step, start_ps in enumerate(times[:-1]):
        yield {
            "ph": "C",
            "name": COUNTER,
            "pid": pid,
            "ts": start_ps / PS_PER_US,
            "args": {name: amounts[step] for name, amounts in shown.items()},
        }
    peak = outcome.peak_memory
    yield {
        "ph": "i",
        "s": "p",
        "name": PEAK,
        "pid": pid,
        "tid": 0,
        "ts": peak.start_ps / PS_PER_US,
        "args": {
            "bytes": outcome.all_layers.usage.peak_bytes,
            "phase": peak.phase,
            "module": peak.module,
            "operation": peak.operation,
        },
    }
