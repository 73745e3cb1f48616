"""``python -m buddysim run``: replay a trace and say what it costs and what it gains."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buddysim.buddy import Targets
    from buddysim.machine import Machine
    from buddysim.replay import ReplayResult
    from buddysim.trace import Trace

NAME = "run"
HELP = """replay a trace and show what a memory configuration costs and gains

Without --scheme: Buddy Compression, and a GPU with unlimited memory as the baseline. Targets come from the trace's own
values (see: profile) unless a file gives them. The screen is a summary; --json keeps everything."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.buddy import Distribution, ProfileOptions
    from buddysim.compress.registry import entry_algorithms
    from buddysim.replay.schemes import BASELINE, DEFAULT, REGISTRY

    schemes = "; ".join(f"{name}: {scheme.SUMMARY}" for name, scheme in REGISTRY.items())
    parser.add_argument("file", metavar="FILE", help="the trace file")
    parser.add_argument(
        "--machine", metavar="NAME|FILE.toml", default="p100-nvlink2", help="what is simulated (default: p100-nvlink2)"
    )
    parser.add_argument(
        "--scheme",
        metavar="NAME[,NAME...]",
        default=f"{DEFAULT},{BASELINE}",
        help=f"replay schemes, one result each (default: %(default)s). {schemes.replace('%', '%%')}",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        nargs="+",
        default=[],
        dest="settings",
        help="change the machine, for example l2.size=6MiB; may be repeated",
    )
    parser.add_argument("--targets", metavar="FILE", help="target ratios, as profile -o writes them")
    parser.add_argument(
        "--threshold",
        metavar="SHARE",
        type=float,
        default=ProfileOptions.threshold,
        help="Buddy Threshold: share of an allocation's entries that may overflow its target (default: %(default)s)",
    )
    parser.add_argument(
        "--compressor",
        metavar="NAME",
        default=ProfileOptions.algorithm,
        help=f"whose sizes entries have: {', '.join(entry_algorithms())} (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, default=ProfileOptions.seed, help="of sizes that the trace doesn't know"
    )
    parser.add_argument(
        "--distribution",
        metavar="NAME",
        default=ProfileOptions.distribution,
        help=f"of those sizes: {', '.join(Distribution.names())} (default: %(default)s)",
    )
    parser.add_argument(
        "--kernels", metavar="FIRST:END", help="the kernels to run, by their number in the trace: 3, 3:7, 3: or :7"
    )
    parser.add_argument("--json", metavar="FILE", help="write the full result; -: to standard output, no screen")
    parser.add_argument("--parquet", metavar="FILE", help="write the full result as tidy rows (needs pyarrow)")
    parser.add_argument(
        "--no-sensitivity",
        action="store_true",
        help="don't run again with gaps halved and doubled where the trace had to assume them",
    )


def run(args: argparse.Namespace) -> int:
    from buddysim.base.atomic import check_writable
    from buddysim.base.parquet import check_parquet
    from buddysim.trace import open_trace

    outputs = [path for path in (args.json, args.parquet) if path not in (None, "-")]
    schemes = chosen_schemes(args.scheme)
    kernels = chosen_kernels(args.kernels)
    if args.parquet is not None:
        check_parquet()
    machine = _machine(args)
    with open_trace(args.file) as trace:
        for path in outputs:
            _keep_inputs(path, args)
            check_writable(path)
        results = _run_all(trace, machine, schemes, kernels, args)
    _report(results, args)
    return 0


def chosen_schemes(text: str) -> list[str]:
    """Scheme names separated by commas, each once; a BuddysimError names the nearest of an unknown one."""
    from buddysim.replay.schemes import REGISTRY

    chosen = [name.strip() for name in text.split(",")]
    for name in chosen:
        REGISTRY.find(name)
    return list(dict.fromkeys(chosen))


def chosen_kernels(text: str | None) -> slice | None:
    """``3``, ``3:7``, ``3:`` or ``:7`` as a slice."""
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import shortened

    if text is None:
        return None
    parts = [part.strip() for part in text.split(":")]
    if len(parts) > 2 or not all(part == "" or (part.isdecimal() and len(part) < 10) for part in parts) or text == "":
        raise BuddysimError(f"--kernels: {shortened(text)}: expected a kernel or FIRST:END, for example 3 or 3:7")
    first = int(parts[0]) if parts[0] else 0
    if len(parts) == 1:
        return slice(first, first + 1)
    end = int(parts[1]) if parts[1] else None
    if end is not None and end <= first:
        raise BuddysimError(f"--kernels: {shortened(text)}: no kernel in it: expected the end after the first")
    return slice(first, end)


def _machine(args: argparse.Namespace) -> Machine:
    from buddysim.base.settings import parse_settings
    from buddysim.machine import Machine

    machine = Machine.load(args.machine)
    overrides = parse_settings(setting for group in args.settings for setting in group)
    return machine.with_overrides(overrides, "--set") if overrides else machine


def _keep_inputs(path: str, args: argparse.Namespace) -> None:
    """An output must not replace what the run reads."""
    from buddysim.base.errors import BuddysimError

    for read in (args.file, args.targets, args.machine):
        if read is not None and Path(read).exists() and Path(path).resolve() == Path(read).resolve():
            raise BuddysimError(f"{path}: is an input of this run: expected another file to write")


def _run_all(
    trace: Trace, machine: Machine, schemes: Sequence[str], kernels: slice | None, args: argparse.Namespace
) -> dict[str, ReplayResult]:
    from buddysim.replay import simulate
    from buddysim.replay.sensitivity import Progress, with_gap_sensitivity
    from buddysim.report.progress import progress_bars

    targets = _targets(trace, machine, schemes, args)

    def run_one(scheme: str, gap_scale: Fraction, progress: Progress | None) -> ReplayResult:
        return simulate(
            trace,
            machine,
            scheme,
            targets,
            threshold=args.threshold,
            compressor=args.compressor,
            seed=args.seed,
            distribution=args.distribution,
            kernels=kernels,
            gap_scale=gap_scale,
            progress=progress,
        )

    with progress_bars() as start_bar:
        results = {scheme: run_one(scheme, Fraction(1), start_bar(scheme) if start_bar else None) for scheme in schemes}
        if _asks_for_sensitivity(trace, schemes, args):
            results = with_gap_sensitivity(results, run_one, start_bar("half and double gaps") if start_bar else None)
    return results


def _targets(trace: Trace, machine: Machine, schemes: Sequence[str], args: argparse.Namespace) -> Targets | None:
    """The targets of every run, read or profiled once."""
    from buddysim.buddy import ProfileOptions, Targets
    from buddysim.replay.driver import targets_for
    from buddysim.replay.schemes import REGISTRY

    if args.targets is not None:
        return Targets.load(args.targets, trace)
    if any(REGISTRY.find(scheme).uses_targets for scheme in schemes):
        options = ProfileOptions(
            args.threshold, algorithm=args.compressor, seed=args.seed, distribution=args.distribution
        )
        return targets_for(trace, machine, options)
    return None


def _asks_for_sensitivity(trace: Trace, schemes: Sequence[str], args: argparse.Namespace) -> bool:
    from buddysim.replay.schemes import BASELINE

    return trace.provenance.assumes("gaps") and not args.no_sensitivity and BASELINE in schemes and len(schemes) > 1


def _report(results: Mapping[str, ReplayResult], args: argparse.Namespace) -> None:
    from buddysim.base.jsonfile import write_json
    from buddysim.base.parquet import write_parquet
    from buddysim.report.table import print_result

    content = {scheme: result.to_dict() for scheme, result in results.items()}
    if args.parquet is not None:
        write_parquet(args.parquet, content)
    if args.json is not None:
        write_json(args.json, content)
    if args.json == "-":
        return
    written = [path for path in (args.json, args.parquet) if path is not None]
    kept = f"full result: {', '.join(written)}" if written else "full result: not kept (--json FILE writes it)"
    print_result(content, kept)
