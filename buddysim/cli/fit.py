"""``python -m buddysim fit``: the plan with which a training step fits into a GPU, and what it costs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from buddysim.training.fitting.fit import FitQuestion
    from buddysim.training.fitting.fit_result import FitResult

NAME = "fit"
HELP = """find what to keep, recompute or offload so that a training fits

Groups are the blocks of a model's configuration, or parts of another network. The plan with the least time within the
budget is searched, and each plan that is tried is simulated. Ctrl-C gives the best one so far."""

_LEFT_OUT = ("network", "batch", "machine", "scheme", "memory_bytes", "pool_policy", "prefetch")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.base.option import field_options
    from buddysim.cli.json_output import add_json_argument
    from buddysim.cli.option_arguments import add_options
    from buddysim.training.fitting.choices import LOSSY
    from buddysim.training.networks.config_options import ConfigOptions
    from buddysim.training.request import request_options

    declared = request_options()
    add_options(parser, {name: declared.pop(name) for name in ("network", "batch", "machine")})
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        nargs="+",
        default=[],
        dest="settings",
        help="change the machine, for example training.link=pcie4; may be repeated",
    )
    parser.add_argument(
        "--memory-budget", metavar="SIZE", help="GPU memory, for example 60GB; the machine's if not given"
    )
    parser.add_argument(
        "--slowdown",
        metavar="PERCENT",
        help="find the least memory with which a step takes at most so much longer than the fastest plan",
    )
    parser.add_argument(
        "--allow", metavar="NAME[,NAME..]", default="", help=f"allow what changes results: {', '.join(LOSSY)}"
    )
    parser.add_argument(
        "--tries",
        metavar="N",
        type=int,
        help="plans to simulate, next to single schemes and plans of one choice; 16 of a model's configuration, 400 of "
        "another network, if not given",
    )
    of_configs = field_options(ConfigOptions)
    add_options(
        parser, {name: one for name, one in declared.items() if name not in _LEFT_OUT and name not in of_configs}
    )
    add_options(parser.add_argument_group("networks from a config.json"), of_configs)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action="append",
        default=[],
        help="write the plan: .toml for train --plan, .py for PyTorch; may be repeated",
    )
    add_json_argument(parser, "answer, bounds and plan")


def run(args: argparse.Namespace) -> int:
    from buddysim.base.output import check_outputs
    from buddysim.report.fit_screen import fit_parts
    from buddysim.report.screen import print_screen

    question = _question(args)
    _check_kinds(args.output)
    check_outputs([None if args.json == "-" else args.json, *args.output], [args.network, args.machine])
    result = _answer(question)
    _write(result, args)
    if args.json != "-":
        print_screen(fit_parts(result, _saved(args)))
    _refuse_where_nothing_fits(result, args)
    return 0


def _check_kinds(paths: Sequence[str]) -> None:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import shortened

    for path in paths:
        if not path.endswith((".toml", ".py")):
            raise BuddysimError(f"-o {shortened(path)}: expected a name that ends in .toml or .py")


def _question(args: argparse.Namespace) -> FitQuestion:
    from dataclasses import replace

    from buddysim.base.settings import parse_settings
    from buddysim.training.fitting.fit import FitQuestion
    from buddysim.training.request import TrainingRequest

    request = TrainingRequest.of(
        network=args.network, batch=args.batch, machine=args.machine, calibration=args.calibration, **_options(args)
    ).resolved()
    machine = request.load_machine()
    overrides = parse_settings(setting for group in args.settings for setting in group)
    if overrides:
        machine = machine.with_overrides(overrides, "--set")
    allow = tuple(name.strip() for name in args.allow.split(",") if name.strip())
    return FitQuestion(replace(request, machine=machine), _slowdown(args.slowdown), allow, args.tries)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    from buddysim.base.errors import BuddysimError
    from buddysim.machine.units import parse_size
    from buddysim.training.request import request_options

    options = {name: getattr(args, name) for name in request_options()
               if name not in (*_LEFT_OUT, "calibration", "scheme")}  # fmt: skip
    if args.memory_budget is not None:
        try:
            options["memory_bytes"] = parse_size(args.memory_budget)
        except ValueError as error:
            raise BuddysimError(f"--memory-budget: {error}") from None
        if options["memory_bytes"] < 1:
            raise BuddysimError(f"--memory-budget: {args.memory_budget}: expected more than nothing")
    return options


def _slowdown(text: str | None) -> float | None:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import shortened

    if text is None:
        return None
    try:
        return float(text.strip().removesuffix("%")) / 100
    except ValueError:
        raise BuddysimError(f"--slowdown: {shortened(text)}: expected per cent, for example 10%") from None


def _answer(question: FitQuestion) -> FitResult:
    from buddysim.report.progress import progress_line
    from buddysim.report.quantities import format_gib, format_significant

    with progress_line() as show:
        return question.answer(
            progress=lambda count, one: show(
                f"plan {count}: {format_significant(one.time_ps / 1e9)} ms, {format_gib(one.used_bytes)} GiB"
            )
        )


def _write(result: FitResult, args: argparse.Namespace) -> None:
    from buddysim.base.jsonfile import write_json
    from buddysim.base.output import write_text

    for path in args.output:
        write_text(path, result.plan_python() if path.endswith(".py") else result.plan_toml())
    if args.json is not None:
        write_json(args.json, result.to_dict())


def _saved(args: argparse.Namespace) -> str:
    files = [path for path in (*args.output, args.json) if path is not None]
    return f"written: {', '.join(files)}" if files else "plan as a file: -o plan.toml; all figures: --json FILE"


def _refuse_where_nothing_fits(result: FitResult, args: argparse.Namespace) -> None:
    from buddysim.base.errors import BuddysimError
    from buddysim.report.fit_screen import answer_lines

    if not result.fits:
        first, _, last = answer_lines(result)
        raise BuddysimError(f"{args.network}: {first}; {last}")
