"""How a capture went: for the trace's provenance, and on the terminal when the program has ended."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path
from typing import Final

from buddysim.base.terminal import say, warn
from buddysim.capture.memory.session import CapturedProcess, MemoryCaptureOutcome, Trigger
from buddysim.capture.memory.snapshot_recorder import SnapshotRecorder
from buddysim.capture.messages import signal_text
from buddysim.machine.units import format_size

EVERYTHING: Final = 1 << 62
_OFFSET: Final = re.compile(r"\+0x[0-9a-f]+")
_LITTLE_NS: Final = 50_000_000
_LITTLE_BYTES: Final = 2_000_000
_LITTLE_FRACTION: Final = 0.1


def captured(trigger: Trigger, args: argparse.Namespace) -> dict[str, str]:
    """What is in the file, for its provenance; `args` are those of the command."""
    axis = f"calls of {trigger.function or 'allocating functions'}" if trigger.calls else "the process's processor time"
    stored_text = (
        "all bytes"
        if args.contents >= EVERYTHING
        else (
            f"at most {format_size(args.contents)} in the file, as much in every snapshot: small allocations whole, of "
            f"others pages chosen by seed {args.seed}"
        )
    )
    seen = (
        "size maps of all bytes"
        if args.sample_bytes >= EVERYTHING
        else f"size maps of about {format_size(args.sample_bytes)} of each larger allocation"
    )
    matching = f", of which those whose name matches {args.match.pattern!r}" if args.match else ""
    return {
        "contents": (
            f"copy-on-write images of the process along {axis}, {_distances(args.snapshots)}; {seen}; bytes: {stored_text}"
        ),
        "allocations": (
            f"those of at least {format_size(args.min_bytes)} that were live at a snapshot, static objects of that "
            f"size, and memory that is neither malloc's nor mmap's{matching}; named by call site; addresses moved to "
            "multiples of 128 B; not in the file: smaller ones, those that lived between two snapshots only, files "
            "that are mapped, stacks, other processes"
        ),
        "copies": "none: a native program has one memory",
    }


def _distances(snapshots: int) -> str:
    if not snapshots:
        return "every one kept"
    return f"{snapshots} kept at nearly equal distances, as far as the run was long enough"


def end_of(outcome: MemoryCaptureOutcome) -> str:
    """How the program ended."""
    if outcome.returncode >= 0:
        return f"none: the program ended with exit code {outcome.returncode}"
    return f"the program was killed by {signal_text(outcome.returncode)} after the last snapshot"


def children_of(outcome: MemoryCaptureOutcome) -> dict[str, str]:
    """What ran beside the program with memory of its own, where anything did."""
    return {"children": f"not captured{_named(outcome.owners)}"} if outcome.owners else {}


def problems_of(outcome: MemoryCaptureOutcome, process: CapturedProcess) -> dict[str, str]:
    """What went wrong during the capture, where anything did."""
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
    """What the memory that was resident has beyond what was captured, where that is much."""
    residence = process.residence
    missing = residence.malloc_rest + residence.unseen
    if missing < max(_LITTLE_BYTES, _LITTLE_FRACTION * residence.resident):
        return None
    parts = []
    if residence.malloc_rest:
        parts.append(f"{_mib(residence.malloc_rest)} in malloc's heaps: smaller allocations, freed memory")
    if residence.unseen:
        parts.append(f"{_mib(residence.unseen)} in stretches that are too small")
    return (
        f"{_mib(missing)} of the {_mib(residence.resident)} of memory that was resident are not captured "
        f"({'; '.join(parts)}); smaller ones: --min-bytes"
    )


def report(
    output: object, record: SnapshotRecorder, outcome: MemoryCaptureOutcome, process: CapturedProcess, trigger: Trigger
) -> None:
    """To the standard error, as the standard output is the program's."""
    allocations = {one.header.number: one.header.bytes for snapshot in record.snapshots for one in snapshot.allocations}
    largest = max((sum(one.header.bytes for one in snapshot.allocations) for snapshot in record.snapshots), default=0)
    say(
        f"{output}: {_count(len(record.snapshots), 'snapshot')} of {_count(len(allocations), 'allocation')}, "
        f"up to {_mib(largest)} at once; {_mib(record.bytes_seen)} read"
    )
    captured_ones = [one for one in outcome.processes if one.max_snapshot_bytes]
    if len(captured_ones) > 1:
        name = Path(process.program).name
        say(f"of {len(captured_ones)} processes with memory that is large enough, the one that held most: {name}")
    elif process is not outcome.processes[0]:
        say(f"the trace is of a child of the program: {Path(process.program).name}")
    for problem in problems_of(outcome, process).values():
        warn(problem)
    if outcome.returncode < 0:
        warn(end_of(outcome))
    left_to_children = _left_to_children(outcome)
    if not record.snapshots or not allocations:
        hint = "in the program itself" if left_to_children else "; smaller allocations: --min-bytes"
        warn(f"nothing large enough was seen{' ' if left_to_children else ''}{hint}")
    if left_to_children:
        warn(
            f"most of the work was done by other processes that the program started{_named(outcome.children)}, and "
            "children are not captured: --follow captures them too"
        )
    elif outcome.owners:
        warn(
            f"processes that the program started{_named(outcome.owners)} have memory of their own, which is not "
            "captured: --follow captures them too"
        )
    if any(_OFFSET.search(one.header.name) for snapshot in record.snapshots[-1:] for one in snapshot.allocations):
        say("names with an offset (+0x..) have no source line: compile the program with -g")
    if process.total and len(record.snapshots) > 1:
        options = exact_trigger_options(process.total, len(record.snapshots), trigger)
        say(f"for that many at exactly equal distances: {options}")
    if outcome.answered and process.total is not None and trigger.calls and process.total < trigger.interval:
        warn(f"{process.total} calls of {trigger.function or 'allocating functions'} were counted in all")


def _left_to_children(outcome: MemoryCaptureOutcome) -> bool:
    """Whether the program's children used more processor time than the processes that were captured.

    A program that ends without a word (`_exit`) and without a snapshot used less than the first interval.
    """
    own_ns = sum(process.own_ns for process in outcome.processes)
    return outcome.answered and bool(outcome.children) and outcome.all_ns > 2 * own_ns + _LITTLE_NS


def _named(children: list[str]) -> str:
    """What the children ran, the most frequent first: at most three names."""
    names = Counter(Path(child.split()[0]).name for child in children if child.strip())
    if not names:
        return " (copies of itself)"
    common_names = [name for name, _ in names.most_common(3)]
    more = ", and others" if len(names) > len(common_names) else ""
    return f" ({', '.join(common_names)}{more})"


def exact_trigger_options(total: int, snapshots: int, trigger: Trigger) -> str:
    """The options of a next run that takes those snapshots only."""
    if trigger.calls:
        function = f"{trigger.function}:" if trigger.function else ""
        return f"--every-calls {function}{total // snapshots} --snapshots all"
    return f"--every-seconds {total / snapshots / 1e9:.4g} --snapshots all"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
