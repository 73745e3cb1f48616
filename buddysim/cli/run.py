"""``python -m buddysim run``: replay a trace under memory schemes and show time, memory and traffic."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buddysim.machine import Machine
    from buddysim.replay import ReplayResult
    from buddysim.trace import Trace

NAME = "run"
TASK = "simulate"
ORDER = 100
HELP = """replay a trace under memory schemes and print time, memory, traffic

The default schemes are Buddy Compression and, as the baseline, a GPU with unlimited memory. Target ratios are profiled
on the trace itself (see: profile), on the trace of --profile-from, or read from --targets. --json has every counter."""


DEFAULTS = ("buddy", "ideal")
EQUAL_CAPACITY = ("buddy", "unified-memory", "pinned-host", "ideal")
#: Fields of a request that are arguments, in addition to trace, machine, scheme and sensitivity.
_ARGUMENTS = (
    "targets", "profile_from", "profile_until_launch", "threshold", "compressor", "seed", "size_distribution",
    "partial", "kernels", "queueing", "exact_order",
)  # fmt: skip
_MAX_DIGITS = 9  # of a kernel's number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from dataclasses import replace

    from buddysim.base.option import field_options
    from buddysim.cli.completion import completes
    from buddysim.cli.machine_changes import add_set_argument
    from buddysim.cli.option_arguments import add_options
    from buddysim.replay.request import ReplayRequest
    from buddysim.replay.schemes import BASELINE, DEFAULT, REGISTRY
    from buddysim.replay.sensitivity import AUTO, NONE

    schemes = "; ".join(f"{name}: {scheme.SUMMARY}" for name, scheme in REGISTRY.items())
    declared = field_options(ReplayRequest)
    add_options(parser, {name: declared.pop(name) for name in ("trace", "machine")})
    completes(
        parser.add_argument(
            "--scheme",
            metavar="NAME[,NAME...]",
            help=f"replay schemes to simulate (default: {DEFAULT},{BASELINE}). {schemes.replace('%', '%%')}",
        ),
        "replay scheme",
    )
    add_set_argument(parser, "l2.size=6MiB")
    parser.add_argument(
        "--baseline-set",
        metavar="KEY=VALUE",
        action="append",
        nargs="+",
        default=[],
        dest="baseline_settings",
        help=f"change the machine of the baseline, {BASELINE}, alone: link.bandwidth=150GB/s; may be repeated",
    )
    of_sensitivity = replace(declared.pop("sensitivity"), default=AUTO)
    add_options(parser, {name: declared[name] for name in _ARGUMENTS} | {"sensitivity": of_sensitivity})
    parser.add_argument(
        "--no-sensitivity", action="store_const", const=NONE, dest="sensitivity", help=f"as --sensitivity {NONE}"
    )
    parser.add_argument(
        "--equal-capacity",
        action="store_true",
        help=f"compare schemes with the device memory that {DEFAULT} takes; Unified Memory gets that much "
        f"(default schemes: {','.join(EQUAL_CAPACITY)})",
    )
    parser.add_argument(
        "--require-data-values", action="store_true", help="refuse a trace with allocations without data values"
    )
    parser.add_argument("--json", metavar="FILE", help="write the full result; -: to standard output, no screen")
    parser.add_argument("--assumptions", action="store_true", help="list every assumption of the result, numbered")
    parser.add_argument("--parquet", metavar="FILE", help="write the full result as tidy rows (needs pyarrow)")
    parser.add_argument(
        "--timeline", metavar="FILE.json", help="write kernels, DRAM and link over time, for Perfetto (ui.perfetto.dev)"
    )


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.output import check_outputs
    from buddysim.base.parquet import check_parquet
    from buddysim.cli.json_output import json_file
    from buddysim.cli.machine_changes import changed_machine
    from buddysim.cli.scheme_names import scheme_names
    from buddysim.machine import Machine
    from buddysim.trace import open_trace

    outputs = [json_file(args), args.parquet, args.timeline]
    check_outputs(outputs, [args.trace, args.targets, args.machine, args.profile_from])
    schemes = scheme_names(
        args.scheme or ",".join(EQUAL_CAPACITY if args.equal_capacity else DEFAULTS), "replay scheme"
    )
    kernels = parse_kernels(args.kernels)
    if args.parquet is not None:
        check_parquet()
    if args.timeline is not None and not args.timeline.endswith(".json"):
        raise BuddysimError(f"--timeline {args.timeline}: expected a name that ends in .json")
    machine = changed_machine(Machine.load(args.machine), args)
    with open_trace(args.trace) as trace:
        if args.require_data_values:
            _check_values(trace, args.compressor)
        results = _run_all(trace, machine, schemes, kernels, args)
    _report(results, machine, args)
    return 0


def parse_kernels(text: str | None) -> slice | None:
    """``3``, ``3:7``, ``3:`` or ``:7`` as a slice."""
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import shortened
    from buddysim.base.ranges import parse_range

    if text is None:
        return None
    try:
        return slice(*parse_range(text, "kernel", "3 or 3:7", _MAX_DIGITS))
    except ValueError as error:
        raise BuddysimError(f"--kernels: {shortened(text)}: {error}") from None


def _check_values(trace: Trace, compressor: str) -> None:
    """Refuse a trace without sizes or data values of an allocation, whose sizes would be synthetic."""
    from buddysim.base.errors import BuddysimError
    from buddysim.buddy import SizeSource

    synthetic = SizeSource(trace, compressor).synthetic_allocations
    if synthetic:
        names = ", ".join(synthetic[:4]) + (f" and {len(synthetic) - 4} more" if len(synthetic) > 4 else "")
        raise BuddysimError(
            f"{trace.path}: --require-data-values: no data values or size maps of {names}: expected them for every "
            "allocation, as sizes are synthetic otherwise"
        )


def _run_all(
    trace: Trace, machine: Machine, schemes: Sequence[str], kernels: slice | None, args: argparse.Namespace
) -> dict[str, ReplayResult]:
    from buddysim.base.settings import parse_settings
    from buddysim.replay import simulate_schemes
    from buddysim.report.progress import progress_bars

    baseline = (setting for group in args.baseline_settings for setting in group)
    with progress_bars() as start_bar:
        return simulate_schemes(
            trace,
            machine,
            schemes,
            equal_capacity=args.equal_capacity,
            baseline_set=parse_settings(baseline, "--baseline-set"),
            start_progress=start_bar,
            sensitivity=args.sensitivity,
            **{**{name: getattr(args, name) for name in _ARGUMENTS}, "kernels": kernels},
        )


def _report(results: Mapping[str, ReplayResult], machine: Machine, args: argparse.Namespace) -> None:
    from buddysim.base.jsonfile import write_json
    from buddysim.base.parquet import write_parquet
    from buddysim.cli.json_output import is_on_stdout
    from buddysim.cli.machine_changes import changed_keys
    from buddysim.report.replay_screen import print_result
    from buddysim.report.replay_timeline import write_timeline

    content = {scheme: result.to_dict() for scheme, result in results.items()}
    if args.parquet is not None:
        write_parquet(args.parquet, content)
    if args.timeline is not None:
        write_timeline(args.timeline, content)
    if args.json is not None:
        write_json(args.json, content)
    if is_on_stdout(args):
        return
    written = [path for path in (args.json, args.parquet) if path is not None]
    saved = f"full result: {', '.join(written)}" if written else "not saved (--json FILE)"
    saved += f"; timeline: {args.timeline}" if args.timeline is not None else ""
    seconds = sum(result.speed["seconds"] for result in results.values())
    print_result(content, saved, changed_keys(args), machine, args.assumptions, seconds)
