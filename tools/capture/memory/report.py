"""What a capture says about itself: in the trace's provenance, and on the terminal when the program has ended."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Final

from buddysim.machine.units import format_size
from tools.capture.memory.record import Record
from tools.capture.memory.session import Outcome, Trigger

EVERYTHING: Final = 1 << 62


def captured(
    trigger: Trigger, snapshots: int, least_bytes: int, contents_bytes: int, look_at_bytes: int, seed: int
) -> dict[str, str]:
    """What is in the file, for its provenance."""
    axis = f"calls of {trigger.function or 'allocating functions'}" if trigger.calls else "the process's processor time"
    kept = (
        "all bytes"
        if contents_bytes >= EVERYTHING
        else f"of allocations above {format_size(contents_bytes)} about that much, as pages chosen by seed {seed}"
    )
    seen = (
        "size maps of all bytes"
        if look_at_bytes >= EVERYTHING
        else f"size maps of about {format_size(look_at_bytes)} of each larger allocation"
    )
    return {
        "contents": f"copy-on-write images of the process along {axis}, {_distances(snapshots)}; {seen}; bytes: {kept}",
        "allocations": (
            f"those of at least {format_size(least_bytes)} that were live at a snapshot, and static objects of that "
            "size; named by call site; addresses moved to multiples of 128 B; not in the file: smaller ones, those "
            "that lived between two snapshots only, files that are mapped, stacks, other processes"
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
    name = signal.Signals(-outcome.returncode).name
    return f"the program was killed by signal {-outcome.returncode} ({name}) after the last snapshot"


def problems_of(outcome: Outcome, unreadable_bytes: int) -> dict[str, str]:
    """What went wrong on the way, where anything did."""
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


def report(output: Path, record: Record, outcome: Outcome, trigger: Trigger) -> None:
    """To the standard error, as the standard output is the program's."""
    allocations = {one.number: one.bytes for moment in record.moments for one in moment.seen}
    largest = max((sum(one.bytes for one in moment.seen) for moment in record.moments), default=0)
    _say(
        f"{output}: {len(record.moments)} snapshots of {len(allocations)} allocations, up to {largest / 1e6:.1f} MB "
        f"at once; {record.bytes_seen / 1e6:.1f} MB looked at"
    )
    for problem in problems_of(outcome, record.unreadable_bytes).values():
        _say(f"warning: {problem}")
    if outcome.returncode < 0:
        _say(f"warning: {end_of(outcome)}")
    if not record.moments or not allocations:
        _say("warning: nothing large enough was seen; smaller allocations: --min-bytes")
    if outcome.answered and outcome.total is not None and trigger.calls and outcome.total < trigger.interval:
        _say(f"warning: {outcome.total} calls of {trigger.function or 'allocating functions'} were counted in all")


def _say(text: str) -> None:
    print(f"buddysim: {text}", file=sys.stderr)
