"""``python -m buddysim capture memory``: the memory of a native program as a trace file."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.capture.arguments import ALL, add_compressor, add_program, add_provenance, size, size_or_all
from buddysim.capture.messages import exit_code

if TYPE_CHECKING:
    from buddysim.capture.memory.session import Trigger

NAME = "memory"
ORDER = 20
HELP = "snapshots of the large allocations and the static data of any native program"

_NANOSECONDS = 1_000_000_000
_FIRST_INTERVAL = _NANOSECONDS // 100  # processor time between snapshots at the beginning; it doubles in long runs


def _snapshots(text: str) -> int:
    if text == "all":
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 1 to 1000, or all")
    return int(text)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None


def _calls(text: str) -> Trigger:
    from buddysim.capture.memory.session import Trigger

    function, _, count = text.rpartition(":")
    if not count.isdecimal() or not int(count) or (function and not re.fullmatch(r"[A-Za-z_]\w*", function)):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of calls N, or FUNCTION:N")
    return Trigger(int(count), calls=True, function=function)


def _seconds(text: str) -> Trigger:
    from buddysim.capture.memory.session import Trigger

    try:
        interval = round(float(text) * _NANOSECONDS)
    except (ValueError, OverflowError):
        interval = 0
    if not 0 < interval < 1 << 62:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of seconds above 0")
    return Trigger(interval)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="OUT.bin", help="the trace file (default: PROGRAM.bin)")
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--every-calls",
        type=_calls,
        dest="trigger",
        metavar="[FUNCTION:]N",
        help="a snapshot every N calls of a function of the dynamic symbol table, without one of those that allocate",
    )
    when.add_argument(
        "--every-seconds",
        type=_seconds,
        dest="trigger",
        metavar="S",
        help="seconds of processor time between snapshots (default: from 0.01 on, without --every-calls)",
    )
    parser.add_argument(
        "--snapshots",
        type=_snapshots,
        default=10,
        metavar="N",
        help="number of snapshots to keep, at equal distances over the run; all: every one (default: 10)",
    )
    parser.add_argument(
        "--min-bytes",
        type=size,
        default=64 << 10,
        metavar="SIZE",
        help="smallest allocation or static object to capture (default: 64KiB)",
    )
    parser.add_argument(
        "--contents",
        type=size_or_all,
        default=32 << 20,
        metavar="SIZE",
        help="bytes of memory to keep in the file, the same for each snapshot; sampled pages of large "
        "allocations; or all (default: 32MiB)",
    )
    parser.add_argument(
        "--sample-bytes",
        type=size_or_all,
        default=ALL,
        metavar="SIZE",
        help="bytes of an allocation to read per snapshot; sizes of other entries stay unknown (default: all)",
    )
    parser.add_argument(
        "--match",
        type=_pattern,
        metavar="REGEX",
        help="leave out allocations whose name (call site or symbol) doesn't match",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="capture the program's children too (of timeout, mpirun, a shell script); the trace is of the process "
        "whose memory held most",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the sampled pages (default: 0)")
    add_compressor(parser)
    add_provenance(parser, "program", level=3)
    add_program(parser)


def run(args: argparse.Namespace) -> int:
    """Capture one run; return the program's exit code."""
    from buddysim.base.output import Output, check_output
    from buddysim.capture.incomplete_output import broken_off, settle
    from buddysim.capture.memory.child_program import find_program
    from buddysim.capture.memory.derived_kernels import ASSUMED
    from buddysim.capture.memory.library import HOOKS, build
    from buddysim.capture.memory.report import capture_assumptions, children_of, end_of, problems_of, report
    from buddysim.capture.memory.session import CaptureRequest, Session, Trigger
    from buddysim.capture.memory.snapshot_recorder import SnapshotRecorder
    from buddysim.trace import Provenance

    program = find_program(args.program)
    trigger = args.trigger or Trigger(_FIRST_INTERVAL)
    function = trigger.function if trigger.function not in ("", *HOOKS) else None
    if not 0 <= args.seed < 1 << 63:
        raise BuddysimError(f"capture memory: --seed {args.seed}: expected 0 to 2^63 - 1")
    output = Path(f"{Path(args.program).name}.bin") if args.output is None else args.output
    check_output(output, [program, *args.arguments])
    library = build(function)
    command = [args.program, *args.arguments]
    provenance = Provenance(
        tool="buddysim capture memory",
        version=buddysim.__version__,
        source=args.source or Path(args.program).name,
        licence=args.licence,
        command=shlex.join(["buddysim", *sys.argv[1:]]),
        assumptions=ASSUMED | capture_assumptions(trigger, args),
    )
    part = Output(output, [program, *args.arguments], keep_part=True)

    def record_in(file: Output) -> SnapshotRecorder:
        return SnapshotRecorder(file, provenance, args.snapshots, args.contents, args.seed, args.level, args.compressor)

    records = [record_in(part)]

    def add_recorder() -> SnapshotRecorder:
        records.append(record_in(Output(Path(f"{output}.process-{len(records) + 1}"), keep_part=True)))
        return records[-1]

    request = CaptureRequest(
        trigger, args.snapshots, args.min_bytes, args.sample_bytes, args.seed, args.match, args.follow
    )
    session = Session(records[0], library, request, add_recorder)
    try:
        outcome = session.run(command, program)
    except BuddysimError:
        for one in records:
            one.abort()
            one.output.discard()
        raise
    if outcome.broken is not None:
        for one in records:
            one.abort()
        raise broken_off(part, outcome.broken)
    process = outcome.largest()
    record = process.record or records[0]
    try:
        record.finish(process.length, {"end": end_of(outcome)} | children_of(outcome) | problems_of(outcome, process))
    except BuddysimError as error:
        raise broken_off(record.output, error) from None
    for one in records:
        if one is not record:
            one.abort()
            one.output.discard()
    if record is not records[0]:
        part.take_over(record.output)
    report(output, record, outcome, process, trigger)
    settle(part, outcome.returncode, empty=not any(taken.allocations for taken in record.snapshots))
    return exit_code(outcome.returncode)
