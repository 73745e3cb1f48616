"""``python -m buddysim capture opencl``: the memory accesses of a program's OpenCL kernels as a trace file."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import buddysim
from buddysim.base.counted import counted
from buddysim.base.terminal import one_line, say, warn
from buddysim.capture.arguments import add_compressor, add_program, add_provenance, launch_window, snapshot_count
from buddysim.capture.messages import exit_code, signal_text

if TYPE_CHECKING:
    from buddysim.capture.launch_window import LaunchWindow
    from buddysim.capture.opencl.session import OpenclCaptureOutcome
    from buddysim.capture.opencl.toolchain import Toolchain
    from buddysim.capture.opencl.trace_recorder import TraceRecorder
    from buddysim.trace import Provenance

NAME = "opencl"
ORDER = 10
HELP = """the kernels of any OpenCL program, lane by lane, with the values in its buffers

The program runs on PoCL; no GPU is needed. Its exit code is passed on."""


def _every(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: expected 0 or more")
    return int(text)


def _launches(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 10**12:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 1 or more")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="OUT.bin", help="the trace file to write (default: PROGRAM.bin)")
    parser.add_argument(
        "--snapshots",
        type=snapshot_count,
        default=10,
        metavar="N",
        help="number of snapshots of all buffers to keep, at equal distances in launches (default: 10)",
    )
    parser.add_argument(
        "--total-launches",
        type=_launches,
        metavar="N",
        help="the run makes N launches: exactly equal distances, and no snapshot is taken that isn't kept",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--launches",
        type=launch_window,
        metavar="FIRST:END",
        help="trace only these launches, by their number in the run: 750, 750:753, 750: or :3; the others run in PoCL "
        "as they would without the capture. Sizes of all buffers are taken before and after each traced one too",
    )
    which.add_argument("--list-launches", action="store_true", help="trace nothing; list the launches at the end")
    parser.add_argument(
        "--contents-every",
        type=_every,
        default=1,
        metavar="N",
        help="period of the 8 KiB pages whose bytes are kept; 0: none, all sizes are kept (default: 1)",
    )
    parser.add_argument(
        "--report-as-gpu",
        action="store_true",
        help="report the device as a GPU with 48 KiB of local memory, work-groups up to 1024 and 56 compute units: "
        "programs that ask choose what they would choose there (results may differ in rounding)",
    )
    parser.add_argument(
        "--emulate-gpu-compiler",
        action="store_true",
        help="compile kernels as a GPU's compiler does: loops unrolled, loads ahead of what uses them "
        "(results may differ in rounding)",
    )
    add_compressor(parser)
    add_provenance(parser, "program", level=1)
    add_program(parser)


def run(args: argparse.Namespace) -> int:
    """Capture one run; return the program's exit code."""
    from buddysim.base.errors import BuddysimError
    from buddysim.base.output import Output, check_output
    from buddysim.capture.incomplete_output import broken_off, settle
    from buddysim.capture.launch_window import plan_capture
    from buddysim.capture.opencl.session import run_program
    from buddysim.capture.opencl.toolchain import find_toolchain, hooks_object, pass_plugin, runtime_library
    from buddysim.capture.opencl.trace_recorder import TraceRecorder

    executable = shutil.which(args.program)
    if executable is None:
        raise BuddysimError(f"{args.program}: not found, or not executable: expected a program to run")
    capture_plan = plan_capture(args.snapshots, args.launches, args.total_launches)
    output = Path(f"{Path(args.program).name}.bin") if args.output is None else args.output
    if not args.list_launches:
        check_output(output, [executable, *args.arguments])
    toolchain = find_toolchain()
    for build in (runtime_library, pass_plugin, hooks_object):
        build(toolchain)
    if args.list_launches:
        return _list_launches(args, executable, toolchain)
    part = Output(output, [executable, *args.arguments], keep_part=True)
    record = TraceRecorder(
        part,
        _provenance(args),
        args.snapshots,
        capture_plan.candidates,
        args.contents_every,
        args.level,
        args.compressor,
    )
    command = [args.program, *args.arguments]
    try:
        outcome = run_program(
            command, executable, record.receive, toolchain, capture_plan, args.report_as_gpu, args.emulate_gpu_compiler
        )
    except BaseException:
        record.abort()
        if not record.counts.launches:
            part.discard()
        raise
    try:
        if outcome.broken is not None:
            raise outcome.broken
        record.finish(_window_assumption(args.launches, record) | {"end": _end_of(record, outcome)})
    except BuddysimError as error:
        record.abort()
        raise broken_off(part, error) from None
    _report(output, record, outcome)
    missing = _check_launches(args, record, outcome)
    if missing and not record.counts.kernels:
        part.discard()
        raise BuddysimError(f"{missing}; {output} was not written")
    settle(part, outcome.returncode, empty=not (record.counts.launches or record.counts.allocations))
    if missing:
        raise BuddysimError(f"{missing}; {output} has {record.counts.kernels} of the window")
    return exit_code(outcome.returncode)


def _list_launches(args: argparse.Namespace, executable: str, toolchain: Toolchain) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.capture.launch_window import NOTHING, CapturePlan
    from buddysim.capture.opencl.listing import LaunchListing
    from buddysim.capture.opencl.session import run_program

    if args.output:
        raise BuddysimError(f"--output {args.output}: --list-launches writes no trace file")
    listing = LaunchListing()
    command = [args.program, *args.arguments]
    outcome = run_program(command, executable, listing.receive, toolchain, CapturePlan(0, NOTHING), args.report_as_gpu)
    for line in listing.lines():
        print(one_line(line), file=sys.stderr)
    say(f"{listing.launches} launches; {outcome.seconds:.1f} s")
    return exit_code(outcome.returncode)


def _provenance(args: argparse.Namespace) -> Provenance:
    from buddysim.capture.opencl.assumptions import ASSUMED, DEVICES
    from buddysim.trace import Provenance

    contents = "all bytes" if args.contents_every == 1 else f"every {args.contents_every}-th page of 8 KiB"
    distances = "nearly equal distances"
    if args.total_launches is not None:
        distances = f"equal distances of a run stated to have {args.total_launches} launches"
    around = "" if args.launches is None else " There are also sizes just before and after each traced launch."
    return Provenance(
        tool="buddysim capture opencl",
        version=buddysim.__version__,
        source=args.source or Path(args.program).name,
        licence=args.licence,
        command=shlex.join(["buddysim", *sys.argv[1:]]),
        assumptions=ASSUMED
        | {
            "device": DEVICES[args.report_as_gpu],
            "contents": (
                f"Up to {args.snapshots} snapshots of all buffers are between launches, at {distances}. Size maps are "
                f"of all bytes; the file has {contents if args.contents_every else 'no bytes'}.{around}"
            ),
        },
    )


def _window_assumption(window: LaunchWindow | None, record: TraceRecorder) -> dict[str, str]:
    """Return the statement on launches outside the window, for the provenance."""
    if window is None:
        return {}
    return {
        "launches": (
            f"Only launches {window} of {record.counts.launches} are traced. The others ran in PoCL; memcpys and "
            "memsets before and after the window are left out, and their effects are in the snapshots."
        )
    }


def _check_launches(args: argparse.Namespace, record: TraceRecorder, outcome: OpenclCaptureOutcome) -> str:
    """Warn where the run differs from the command's options; return the error if the program ended well."""
    launches = record.counts.launches
    if args.total_launches not in (None, launches):
        warn(f"--total-launches {args.total_launches}: the run had {launches} launches")
    missing = args.launches and args.launches.missing(launches)
    if missing and outcome.returncode:
        warn(missing)
        return ""
    return missing or ""


def _end_of(record: TraceRecorder, outcome: OpenclCaptureOutcome) -> str:
    if outcome.returncode < 0:
        return f"the program was killed by {signal_text(outcome.returncode)}: the trace has what it did before"
    if outcome.answered and not record.problems.complete:
        return f"the program ended at once, with exit code {outcome.returncode}: the trace has what it did before"
    return f"none: the program ended with exit code {outcome.returncode}"


def _report(output: object, record: TraceRecorder, outcome: OpenclCaptureOutcome) -> None:
    """Print the summary to standard error, as standard output belongs to the program."""
    counts, problems = record.counts, record.problems
    say(
        f"{output}: {counted(counts.kernels, 'kernel')} of {counted(counts.launches, 'launch', 'launches')}, "
        f"{counted(counts.operations, 'warp operation')} "
        f"({counted(counts.lane_accesses, 'lane access', 'lane accesses')}), "
        f"{counted(counts.allocations, 'allocation')}, {counted(counts.snapshots, 'snapshot')}; "
        f"{outcome.seconds:.1f} s"
    )
    if not outcome.answered:
        warn("the program used no OpenCL")
    for kernel in problems.untraced:
        warn(f"untraced kernel {kernel}")
    for text in problems.notes:
        warn(text)
    if counts.too_wide:
        warn(counts.too_wide)
    if counts.outside:
        warn(f"{counts.outside} lane accesses were outside of all buffers")
    if outcome.others:
        warn(f"{outcome.others} further processes used OpenCL: the trace has only the first one's work")
    if not problems.complete and outcome.answered:
        warn(_end_of(record, outcome))
