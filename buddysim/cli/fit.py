"""``python -m buddysim fit``: the plan with which a training step fits into a GPU, and what it costs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from buddysim.training.fitting.fit import FitQuestion
    from buddysim.training.fitting.fit_result import FitResult

NAME = "fit"
TASK = "simulate"
ORDER = 120
HELP = """find what to keep, recompute or offload so that a training fits

Groups are the blocks of a model's configuration, or parts of another network. The plan with the least time within the
budget is searched, and each plan that is tried is simulated. Ctrl-C gives the best one so far."""

_UNSAVED = "plan: -o plan.toml, -o plan.py; figure: --figure FILE; all numbers: --json FILE"
_LEFT_OUT = ("network", "batch", "machine", "scheme", "memory_bytes", "pool_policy", "prefetch")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from dataclasses import replace

    from buddysim.base.option import field_options
    from buddysim.cli.json_output import add_json_argument
    from buddysim.cli.machine_changes import add_set_argument
    from buddysim.cli.option_arguments import add_options
    from buddysim.training.fitting.choices import LOSSY
    from buddysim.training.fitting.plan_space import options_of_singles
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.request import request_options

    declared = request_options()
    machine = declared.pop("machine")
    several = replace(machine, help=f"{machine.help}; several, with commas: the same question on each")
    add_options(parser, {"network": declared.pop("network"), "machine": several})
    for name, what in (("batch", "samples of a step; 1 of a model's configuration, if not given"),
                       ("sequence", "tokens of a sequence")):  # fmt: skip
        parser.add_argument(f"--{name}", metavar="N|max", help=f"{what}; max: the most for which a plan fits")
        declared.pop(name)
    parser.add_argument(
        "--maximize", metavar="tokens", help="find the batch and the plan with the most tokens per second"
    )
    add_set_argument(parser, "training.link=pcie4")
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
        help="plans to simulate at most next to each series of plans, or at each budget of a series; 2 of a model's "
        "configuration, 40 of another network, if not given",
    )
    parser.add_argument(
        "--link-sweep", action="store_true", help="answer for each of the machine's links, the slowest first"
    )
    of_configs = {name: one for name, one in field_options(ConfigOptions).items() if name != "sequence"}
    add_options(
        parser, {name: one for name, one in declared.items() if name not in _LEFT_OUT and name not in of_configs}
    )
    add_options(parser.add_argument_group("networks from a config.json"), of_configs)
    of_schemes = options_of_singles()
    add_options(parser.add_argument_group("Buddy Compression as a single scheme, with a ratio"), of_schemes)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action="append",
        default=[],
        help="write the plan: .toml for train --plan, .py for PyTorch; may be repeated",
    )
    parser.add_argument(
        "--figure",
        metavar="FILE",
        help="draw memory over time, and time against memory; with --link-sweep time against the link (.png, .svg, "
        ".pdf)",
    )
    add_json_argument(parser, "answer, bounds and plan")


def run(args: argparse.Namespace) -> int:
    from buddysim.base.output import check_outputs
    from buddysim.cli.json_output import is_on_stdout, json_file

    _check_kinds(args.output)
    names = [name.strip() for name in (args.machine or "").split(",") if name.strip()]
    check_outputs([json_file(args), *args.output], [args.network, *names])
    if args.figure is not None:
        from buddysim.plotting.save import check_figure_file

        check_figure_file(args.figure, [args.network, *names])
    if len(names) > 1 or args.link_sweep:
        return _compare(names, args)
    question = question_of(args, names[0] if names else None)
    _check_output(question, args)
    result = _answer(question, args)
    _write(result, args)
    if not is_on_stdout(args):
        from buddysim.report.fit_screen import fit_parts
        from buddysim.report.screen import print_screen

        print_screen(fit_parts(result, _saved(args)))
    _refuse_where_nothing_fits(result, args)
    return 0


def _compare(names: Sequence[str], args: argparse.Namespace) -> int:
    """Answer for several machines, or for each link of one."""
    from dataclasses import replace

    from buddysim.base.errors import BuddysimError
    from buddysim.cli.json_output import is_on_stdout
    from buddysim.report.fit_comparison import comparison_parts
    from buddysim.report.screen import print_screen

    refused = "-o" if args.output else "--figure" if args.figure and not args.link_sweep else "--link-sweep"
    if args.output or (len(names) > 1 and (args.figure or args.link_sweep)):
        raise BuddysimError(f"{refused}: several machines or links: expected one")
    questions = {name: question_of(args, name) for name in names}
    if args.link_sweep:
        question = question_of(args, names[0] if names else None)
        request = question.request
        links = request.load_machine().links
        ordered = sorted(links, key=lambda name: (links[name].prefetch_bytes_per_s, name))
        questions = {
            name: replace(question, request=replace(request, options=replace(request.options, link=name)))
            for name in ordered
        }
    results = {name: _answer(question, args) for name, question in questions.items()}
    if args.figure is not None:
        from buddysim.plotting.save import save_figure
        from buddysim.report.fit_figure import draw_link_sweep

        save_figure(draw_link_sweep(results), args.figure)
    if args.json is not None:
        from buddysim.base.jsonfile import write_json

        write_json(args.json, {name: one.to_dict() for name, one in results.items()})
    if not is_on_stdout(args):
        saved = f"written: {args.json}" if args.json else "all figures: --json FILE"
        print_screen(comparison_parts(results, "link" if args.link_sweep else "machine", saved))
    return 0


def _check_kinds(paths: Sequence[str]) -> None:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import shortened

    for path in paths:
        if not path.endswith((".toml", ".py")):
            raise BuddysimError(f"-o {shortened(path)}: expected a name that ends in .toml or .py")


def question_of(args: argparse.Namespace, machine_name: str | None) -> FitQuestion:
    """Return what the arguments ask for."""
    from dataclasses import replace

    from buddysim.cli.machine_changes import changed_machine
    from buddysim.training.fitting.fit import FitQuestion
    from buddysim.training.request import TrainingRequest

    request = TrainingRequest.of(
        network=args.network, machine=machine_name, calibration=args.calibration, **_options(args)
    ).resolved()
    machine = changed_machine(request.load_machine(), args)
    allow = tuple(name.strip() for name in args.allow.split(",") if name.strip())
    return FitQuestion(replace(request, machine=machine), _slowdown(args.slowdown), allow, args.tries)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    from buddysim.cli.machine_changes import memory_budget_bytes
    from buddysim.training.fitting.fit import MAX
    from buddysim.training.fitting.plan_space import options_of_singles
    from buddysim.training.request import request_options

    options = {name: getattr(args, name) for name in request_options()
               if name not in (*_LEFT_OUT, "calibration", "sequence")}  # fmt: skip
    options |= {name: getattr(args, name) for name in options_of_singles() if getattr(args, name) is not None}
    options |= {name: _count(name, value) for name, value in _sizes(args).items() if value not in (None, MAX)}
    budget = memory_budget_bytes(args)
    return options if budget is None else options | {"memory_bytes": budget}


def _sizes(args: argparse.Namespace) -> dict[str, str | None]:
    return {"batch": args.batch, "sequence": args.sequence}


def _count(name: str, text: str | None) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import shortened

    if text is None or not text.isascii() or not text.isdigit() or len(text) > 9 or not int(text):
        raise BuddysimError(f"--{name} {shortened(text)}: expected a number from 1 on, or max")
    return int(text)


def _slowdown(text: str | None) -> float | None:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import shortened

    if text is None:
        return None
    try:
        return float(text.strip().removesuffix("%")) / 100
    except ValueError:
        raise BuddysimError(f"--slowdown: {shortened(text)}: expected per cent, for example 10%") from None


def _check_output(question: FitQuestion, args: argparse.Namespace) -> None:
    """Refuse a plan as Python of what PyTorch has no code of: before a search, which takes long."""
    from buddysim.base.errors import BuddysimError
    from buddysim.training.recorded_step.from_config import ConfigNetwork

    if any(path.endswith(".py") for path in args.output):
        network = question.request.load_network()
        if not isinstance(network, ConfigNetwork):
            raise BuddysimError(f"{network.name} isn't a model's configuration: expected a plan as .toml")


def _answer(question: FitQuestion, args: argparse.Namespace) -> FitResult:
    from buddysim.report.progress import progress_line
    from buddysim.report.quantities import format_gib, format_significant
    from buddysim.training.fitting.fit import MAX, answer_to

    largest = [name for name, value in _sizes(args).items() if value == MAX]
    with progress_line() as show:
        return answer_to(
            question,
            largest=largest,
            maximize=args.maximize,
            progress=lambda count, one: show(
                f"plan {count}: {format_significant(one.time_ps / 1e9)} ms, {format_gib(one.used_bytes)} GiB"
            ),
        )


def _write(result: FitResult, args: argparse.Namespace) -> None:
    from buddysim.base.jsonfile import write_json
    from buddysim.base.output import write_text

    for path in args.output:
        write_text(path, result.plan_python() if path.endswith(".py") else result.plan_toml())
    if args.figure is not None:
        from buddysim.plotting.save import save_figure
        from buddysim.report.fit_figure import draw_fit

        save_figure(draw_fit(result), args.figure)
    if args.json is not None:
        write_json(args.json, result.to_dict())


def _saved(args: argparse.Namespace) -> str:
    files = [path for path in (*args.output, args.figure, args.json) if path is not None]
    return f"written: {', '.join(files)}" if files else _UNSAVED


def _refuse_where_nothing_fits(result: FitResult, args: argparse.Namespace) -> None:
    from buddysim.base.errors import BuddysimError
    from buddysim.report.fit_lines import answer_lines

    if not result.fits:
        first, _, last = answer_lines(result)
        raise BuddysimError(f"{args.network}: {first}; {last}")
