"""How a capture went: for the trace's provenance, and on the terminal when the program has ended."""

from __future__ import annotations

import argparse
import re
from typing import Final

from buddysim.base.terminal import say, warn
from buddysim.capture.memory.record import Record
from buddysim.capture.memory.session import Outcome, Trigger
from buddysim.capture.messages import signal_text
from buddysim.machine.units import format_size

EVERYTHING: Final = 1 << 62
_OFFSET: Final = re.compile(r"\+0x[0-9a-f]+")
_LITTLE_NS: Final = 50_000_000


def captured(trigger: Trigger, args: argparse.Namespace) -> dict[str, str]:
    """What is in the file, for its provenance; `args` are those of the command."""
    axis = f"calls of {trigger.function or 'allocating functions'}" if trigger.calls else "the process's processor time"
    kept = (
        "all bytes"
        if args.contents >= EVERYTHING
        else f"of allocations above {format_size(args.contents)} about that much, as pages chosen by seed {args.seed}"
    )
    seen = (
        "size maps of all bytes"
        if args.look_at >= EVERYTHING
        else f"size maps of about {format_size(args.look_at)} of each larger allocation"
    )
    matching = f", of which those whose name matches {args.match.pattern!r}" if args.match else ""
    return {
        "contents": (
            f"copy-on-write images of the process along {axis}, {_distances(args.snapshots)}; {seen}; bytes: {kept}"
        ),
        "allocations": (
            f"those of at least {format_size(args.min_bytes)} that were live at a snapshot, and static objects of that "
            f"size{matching}; named by call site; addresses moved to multiples of 128 B; not in the file: smaller "
            "ones, those that lived between two snapshots only, files that are mapped, stacks, other processes"
        ),
        "copies": "none: a native program has one memory",
    }


def _distances(snapshots: int) -> str:
    if not snapshots:
        return "every one kept"
    return f"{snapshots} kept at nearly equal distances, as far as the run was long enough"


def end_of(outcome: Outcome) -> str:
    """How the program ended."""
    if outcome.returncode >= 0:
        return f"none: the program ended with exit code {outcome.returncode}"
    return f"the program was killed by {signal_text(outcome.returncode)} after the last snapshot"


def problems_of(outcome: Outcome, unreadable_bytes: int) -> dict[str, str]:
    """What went wrong during the capture, where anything did."""
    problems = []
    if not outcome.answered:
        problems.append("the preload library was not loaded into the program: nothing was captured")
    if outcome.cut_short:
        problems.append(f"{outcome.cut_short} snapshots were cut short and left out")
    if outcome.failed:
        problems.append(f"{len(outcome.failed)} snapshots could not be taken: {outcome.failed[0]}")
    if outcome.replaced:
        problems.append("the program replaced itself (exec); only the last one's snapshots are here")
    if unreadable_bytes:
        problems.append(f"{unreadable_bytes} bytes could not be read and stand as zeros")
    return {"problems": "; ".join(problems)} if problems else {}


def report(output: object, record: Record, outcome: Outcome, trigger: Trigger) -> None:
    """To the standard error, as the standard output is the program's."""
    allocations = {one.header.number: one.header.bytes for snapshot in record.snapshots for one in snapshot.allocations}
    largest = max((sum(one.header.bytes for one in snapshot.allocations) for snapshot in record.snapshots), default=0)
    say(
        f"{output}: {_count(len(record.snapshots), 'snapshot')} of {_count(len(allocations), 'allocation')}, "
        f"up to {largest / 1e6:.1f} MB at once; {record.bytes_seen / 1e6:.1f} MB read"
    )
    for problem in problems_of(outcome, record.unreadable_bytes).values():
        warn(problem)
    if outcome.returncode < 0:
        warn(end_of(outcome))
    if not record.snapshots or not allocations:
        warn("nothing large enough was seen; smaller allocations: --min-bytes")
        if _left_to_children(outcome):
            warn(
                "most of the work was done by other processes that the program started, and children are not captured: "
                "expected the program itself after --, not a wrapper (timeout, mpirun, a shell script)"
            )
    if any(_OFFSET.search(one.header.name) for snapshot in record.snapshots[-1:] for one in snapshot.allocations):
        say("names with an offset (+0x..) have no source line: compile the program with -g")
    if outcome.total and len(record.snapshots) > 1:
        options = _exact(outcome.total, len(record.snapshots), trigger)
        say(f"for that many at exactly equal distances: {options}")
    if outcome.answered and outcome.total is not None and trigger.calls and outcome.total < trigger.interval:
        warn(f"{outcome.total} calls of {trigger.function or 'allocating functions'} were counted in all")


def _left_to_children(outcome: Outcome) -> bool:
    """Whether the program's children used more processor time than itself.

    A program that ends without a word (`_exit`) and without a snapshot used less than the first interval.
    """
    return outcome.answered and outcome.all_ns > 2 * (outcome.own_ns or 0) + _LITTLE_NS


def _exact(total: int, wanted: int, trigger: Trigger) -> str:
    """The options of a next run that takes those snapshots only."""
    if trigger.calls:
        function = f"{trigger.function}:" if trigger.function else ""
        return f"--every-calls {function}{total // wanted} --snapshots all"
    return f"--every-seconds {total / wanted / 1e9:.4g} --snapshots all"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
