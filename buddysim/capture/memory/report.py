"""The report of a capture: for the trace's provenance, and for the terminal when the program has ended."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path
from typing import Final

from buddysim.base.terminal import say, warn
from buddysim.capture.arguments import ALL
from buddysim.capture.memory.session import CapturedProcess, MemoryCaptureOutcome, Trigger
from buddysim.capture.memory.snapshot_recorder import SnapshotRecorder
from buddysim.capture.messages import signal_text
from buddysim.machine.units import format_size

_OFFSET: Final = re.compile(r"\+0x[0-9a-f]+")
_LITTLE_NS: Final = 50_000_000
_LITTLE_BYTES: Final = 2_000_000
_LITTLE_FRACTION: Final = 0.1


def capture_assumptions(trigger: Trigger, args: argparse.Namespace) -> dict[str, str]:
    """Return the assumptions for the file's provenance; `args` are the command's arguments."""
    axis = f"calls of {trigger.function or 'allocating functions'}" if trigger.calls else "the process's processor time"
    stored_text = (
        "all bytes"
        if args.contents >= ALL
        else (
            f"at most {format_size(args.contents)}, as many in every snapshot: all bytes of small allocations, and of "
            f"others pages selected by seed {args.seed}"
        )
    )
    seen = (
        "size maps of all bytes"
        if args.sample_bytes >= ALL
        else f"size maps of about {format_size(args.sample_bytes)} of each larger allocation"
    )
    matching = f", of which those whose name matches {args.match.pattern!r}" if args.match else ""
    return {
        "contents": (
            f"Snapshots are copy-on-write images of the process along {axis}, {_distances(args.snapshots)}. The file "
            f"has {seen}, and of the bytes {stored_text}."
        ),
        "allocations": (
            f"Allocations are those of at least {format_size(args.min_bytes)} that were live at a snapshot, static "
            f"objects of that size, and untracked memory{matching}. Their names are call sites; addresses are moved to "
            "multiples of 128 B. The file lacks smaller allocations, those that lived only between two snapshots, "
            "mapped files, stacks and other processes: the footprint is optimistic."
        ),
        "copies": "none: a native program has one memory",
    }


def _distances(snapshots: int) -> str:
    if not snapshots:
        return "without a limit"
    return f"at most {snapshots} at nearly equal distances"


def end_of(outcome: MemoryCaptureOutcome) -> str:
    """Return how the program ended, for the provenance."""
    if outcome.returncode >= 0:
        return f"none: the program ended with exit code {outcome.returncode}"
    return f"the program was killed by {signal_text(outcome.returncode)} after the last snapshot"


def children_of(outcome: MemoryCaptureOutcome) -> dict[str, str]:
    """Return the other processes with memory of their own, for the provenance."""
    if not outcome.owners:
        return {}
    others = _names_text(outcome.owners)
    return {"children": f"Other processes of the program{others} are not captured: the footprint is optimistic."}


def problems_of(outcome: MemoryCaptureOutcome, process: CapturedProcess) -> dict[str, str]:
    """Return the problems of the capture, for the provenance."""
    unreadable_bytes = process.record.unreadable_bytes if process.record else 0
    problems = []
    if not outcome.answered:
        problems.append("the preload library was not loaded into the program: nothing was captured")
    if process.cut_short:
        problems.append(f"{process.cut_short} snapshots were cut short and left out")
    if process.failed:
        problems.append(f"{len(process.failed)} snapshots could not be taken: {process.failed[0]}")
    if process.replaced:
        problems.append("the program replaced itself (exec); only the last one's snapshots are here")
    if unreadable_bytes:
        problems.append(f"{unreadable_bytes} bytes could not be read and stand as zeros")
    if (missing := _missing(process)) is not None:
        problems.append(missing)
    return {"problems": "; ".join(problems)} if problems else {}


def _missing(process: CapturedProcess) -> str | None:
    """Return the resident memory that was not captured; None if it is little."""
    residence = process.residence
    missing = residence.malloc_rest + residence.unseen
    if missing < max(_LITTLE_BYTES, _LITTLE_FRACTION * residence.resident):
        return None
    parts = []
    if residence.malloc_rest:
        parts.append(f"{_mib(residence.malloc_rest)} in malloc's heaps: smaller allocations, freed memory")
    if residence.unseen:
        parts.append(f"{_mib(residence.unseen)} in ranges that are too small")
    return (
        f"{_mib(missing)} of the {_mib(residence.resident)} of resident memory are not captured "
        f"({'; '.join(parts)}): lower --min-bytes to capture more"
    )


def report(
    output: object, record: SnapshotRecorder, outcome: MemoryCaptureOutcome, process: CapturedProcess, trigger: Trigger
) -> None:
    """Print the summary to standard error, as standard output belongs to the program."""
    allocations = {one.header.number: one.header.bytes for snapshot in record.snapshots for one in snapshot.allocations}
    largest = max((sum(one.header.bytes for one in snapshot.allocations) for snapshot in record.snapshots), default=0)
    say(
        f"{output}: {_count(len(record.snapshots), 'snapshot')} of {_count(len(allocations), 'allocation')}, "
        f"up to {_mib(largest)} at once; {_mib(record.bytes_seen)} read"
    )
    captured_ones = [one for one in outcome.processes if one.max_snapshot_bytes]
    if len(captured_ones) > 1:
        name = Path(process.program).name
        say(f"the trace is of {name}, which had most memory of {len(captured_ones)} captured processes")
    elif process is not outcome.processes[0]:
        say(f"the trace is of a child of the program: {Path(process.program).name}")
    for problem in problems_of(outcome, process).values():
        warn(problem)
    if outcome.returncode < 0:
        warn(end_of(outcome))
    left_to_children = _left_to_children(outcome)
    if not record.snapshots or not allocations:
        hint = "in the program itself" if left_to_children else ": lower --min-bytes to capture smaller ones"
        warn(f"no allocation was large enough{' ' if left_to_children else ''}{hint}")
    if left_to_children:
        warn(f"child processes{_names_text(outcome.children)} did most of the work, untraced: --follow captures them")
    elif outcome.owners:
        warn(
            f"child processes{_names_text(outcome.owners)} have memory of their own, which is not captured: --follow "
            "captures them"
        )
    if any(_OFFSET.search(one.header.name) for snapshot in record.snapshots for one in snapshot.allocations):
        say("names with an offset (+0x..) lack a source line: compile the program with -g")
    if process.total and len(record.snapshots) > 1:
        options = exact_trigger_options(process.total, len(record.snapshots), trigger)
        say(f"for exactly equal distances: {options}")
    if outcome.answered and process.total is not None and trigger.calls and process.total < trigger.interval:
        warn(f"{process.total} calls of {trigger.function or 'allocating functions'} were counted in all")


def _left_to_children(outcome: MemoryCaptureOutcome) -> bool:
    """Return whether the program's children used more processor time than the captured processes.

    A program that ends by `_exit` and without a snapshot used less than the first interval.
    """
    own_ns = sum(process.own_ns for process in outcome.processes)
    return outcome.answered and bool(outcome.children) and outcome.all_ns > 2 * own_ns + _LITTLE_NS


def _names_text(children: list[str]) -> str:
    """Return at most three names of the children's programs, the most frequent first."""
    names = Counter(Path(child.split()[0]).name for child in children if child.strip())
    if not names:
        return " (copies of itself)"
    common_names = sorted(names, key=lambda name: -names[name])[:3]
    more = ", and others" if len(names) > len(common_names) else ""
    return f" ({', '.join(common_names)}{more})"


def exact_trigger_options(total: int, snapshots: int, trigger: Trigger) -> str:
    """Return the options of another run that takes only those snapshots."""
    if trigger.calls:
        function = f"{trigger.function}:" if trigger.function else ""
        return f"--every-calls {function}{total // snapshots} --snapshots all"
    return f"--every-seconds {total / snapshots / 1e9:.4g} --snapshots all"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
