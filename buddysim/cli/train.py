"""``python -m buddysim train``: one training iteration on a GPU with too little memory, under several schemes."""

from __future__ import annotations

import argparse
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.training.outcome import OutOfMemory
    from buddysim.training.request import TrainingRequest
    from buddysim.training.result import TrainingResult

NAME = "train"
TASK = "simulate"
ORDER = 110
HELP = """simulate a training iteration and print which schemes fit

The table has a row per scheme: whether it fits, its performance relative to a GPU with unlimited memory, its peak
memory and what it offloads. --max-batch finds the largest batch that fits; --memory-budget finds the fastest scheme
that fits in that much memory."""

DEFAULT_SCHEMES = ("baseline-p", "vdnn-all-m", "vdnn-conv-p", "vdnn-dyn", "oracle")
#: Of networks from a configuration.
DEFAULT_SCHEMES_TODAY = (
    "eager", "activation-checkpointing", "offload-activations", "offload-optimizer", "offload-weights",
)  # fmt: skip
#: That a plan file is shown next to, for other networks and for those from a configuration.
REFERENCES = {False: ("baseline-p", "oracle"), True: ("eager",)}

#: The name of options of models' configurations, for --help-family.
CONFIGS = "config.json"
#: Values of options that schemes declare have this before their names in the parsed arguments.
_SCHEME_OPTION = "scheme_option_"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.base.option import field_options
    from buddysim.cli.completion import completes
    from buddysim.cli.machine_changes import add_set_argument
    from buddysim.cli.option_arguments import add_options
    from buddysim.training.options.config_options import ConfigOptions
    from buddysim.training.request import request_options

    parser.usage = "buddysim train [OPTION ..] NAME|FILE"
    of_configs = field_options(ConfigOptions)
    declared = request_options()
    add_options(parser, {name: declared.pop(name) for name in ("network", "batch", "machine")})
    completes(
        parser.add_argument(
            "--scheme",
            metavar="NAME[,NAME...]",
            help=f"schemes, or all (default: {','.join(DEFAULT_SCHEMES)}; for a model's configuration "
            f"{','.join(DEFAULT_SCHEMES_TODAY)})",
        ),
        "training scheme",
    )
    add_options(parser, {"optimizer": declared.pop("optimizer"), "sequence": of_configs.pop("sequence")})
    _add_questions(parser)
    add_set_argument(parser, "training.device_memory=24GiB")
    left_out = {"scheme", "memory_bytes", "sequence", *of_configs}
    of_machine = parser.add_argument_group("the link, layer times and the memory pool")
    add_options(of_machine, {name: option for name, option in declared.items() if name not in left_out})
    _add_outputs(parser)
    configs = parser.add_argument_group("networks from a config.json")
    add_options(configs, of_configs)
    _add_scheme_options(parser, configs, _add_measuring(parser))
    parser.epilog = _schemes_text()


def _add_questions(parser: argparse.ArgumentParser) -> None:
    """Add what is requested instead of the time of the given batch, and where the answer goes."""
    search = parser.add_mutually_exclusive_group()
    search.add_argument("--max-batch", action="store_true", help="find the largest batch that fits, for each scheme")
    search.add_argument(
        "--memory-budget",
        metavar="SIZE",
        help="GPU memory, for example 8GiB, for which to find the fastest scheme",
    )
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        help="file for streams and memory over time: .json for Perfetto; .png, .svg or .pdf as a figure",
    )
    parser.add_argument("--json", metavar="FILE", help="write the full result; -: to standard output, no screen")


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add what the screen shows, and the other files."""
    shown = parser.add_argument_group("the screen")
    shown.add_argument(
        "--stalls", action="store_true", help="show the layers that stall, and the link that would remove each stall"
    )
    shown.add_argument("--columns", metavar="NAME[,NAME..]", help="counters to show as columns; list: their names")
    shown.add_argument("--all", action="store_true", help="show a row for every scheme, and why it does not fit")
    shown.add_argument("--allow-lossy", action="store_true", help="recommend lossy schemes, too")
    shown.add_argument("--keep-order", action="store_true", help="show schemes in the order of --scheme")
    shown.add_argument("--decisions", action="store_true", help="show what each scheme decided, for many schemes too")
    shown.add_argument("--assumptions", action="store_true", help="list every assumption of the result, numbered")
    files = parser.add_argument_group("other files")
    files.add_argument(
        "--against",
        metavar="FILE",
        help="your own measurement of the step: a trace of PyTorch's profiler (.json, .json.gz) or a memory snapshot "
        "(.pickle); print where the prediction is off, for a model's configuration",
    )
    files.add_argument(
        "--save-plan", metavar="FILE", help="write what the scheme decided, one scheme's, as a file that --plan reads"
    )
    files.add_argument("--parquet", metavar="FILE", help="write the full result as tidy rows (needs pyarrow)")


def _add_measuring(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Contents of feature maps from a training that is observed now."""
    measuring = parser.add_argument_group("feature maps observed in a training on this computer")
    measuring.add_argument(
        "--observe-activations", action="store_true", help="train a small network and observe it (needs PyTorch)"
    )
    measuring.add_argument(
        "--dataset", metavar="FOLDER", help="with --observe-activations: the four files of Fashion-MNIST"
    )
    return measuring


def _add_scheme_options(
    parser: argparse.ArgumentParser, configs: argparse._ArgumentGroup, measuring: argparse._ArgumentGroup
) -> None:
    """Add an argument for every option that a scheme declares, in its group; --help hides groups of our families.

    Parameters
    ----------
    configs : options of models' configurations, hidden too
    measuring : options of a source of activations, hidden and shown with schemes that read these
    """
    from buddysim.base.errors import BuddysimError
    from buddysim.cli.option_arguments import add_option
    from buddysim.training import schemes

    groups: dict[str, argparse._ArgumentGroup] = {}
    for name, option in schemes.options().items():
        if option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group)
        try:
            add_option(groups[option.group], name, option, _SCHEME_OPTION)
        except argparse.ArgumentError:
            owner, flag = schemes.schemes_with(name)[0], option.flag(name)
            raise BuddysimError(f"scheme {owner}: option {name!r}: train has {flag} of its own") from None
    families = {name: {schemes.family(scheme) for scheme in schemes.schemes_with(name)} for name in schemes.options()}
    by_group = {title: _families_of(title, families) for title in groups}
    hidden = [group for title, group in groups.items() if schemes.OTHER_FAMILY not in by_group[title]]
    parser.hidden_groups = [configs, measuring, *hidden]  # type: ignore[attr-defined]
    reading = {schemes.family(name) for name in schemes.schemes_with("activations")}
    shown = {
        family: [group for title, group in groups.items() if family in by_group[title]]
        + [measuring] * (family in reading)
        for family in schemes.by_family()
    }
    parser.add_argument(
        "--help-family",
        metavar="FAMILY",
        action=_HelpFamily,
        groups={**shown, CONFIGS: [configs]},
        help=f"print the options of a family of schemes: {', '.join(name for name in shown if shown[name])}; "
        f"{CONFIGS}: of a model's configuration",
    )


def _families_of(group: str, families: Mapping[str, set[str]]) -> set[str]:
    """The families of the schemes that have an option of a group."""
    from buddysim.training import schemes

    names = [name for name, option in schemes.options().items() if option.group == group]
    return set().union(*(families[name] for name in names))


class _HelpFamily(argparse.Action):
    """Prints the options of a family of schemes and exits."""

    def __init__(self, *args: Any, groups: Mapping[str, list[argparse._ArgumentGroup]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.groups = groups

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        from buddysim.base.errors import BuddysimError
        from buddysim.base.hints import hint, shortened
        from buddysim.cli import fill_heading

        if values not in self.groups:
            known = ", ".join(self.groups)
            nearest = hint(values, self.groups)
            raise BuddysimError(f"--help-family: {shortened(values)}: unknown: expected one of {known}{nearest}")
        formatter = parser._get_formatter()
        for group in self.groups[values]:
            formatter.start_section(fill_heading(group.title or ""))
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        if values != CONFIGS:
            print(f"schemes of {values}:")
            print(_schemes_of_family(values))
        options_text = formatter.format_help()
        print(f"\n{options_text}" if options_text.strip() else "\nThese schemes have no options of their own.")
        parser.exit()


def _schemes_text() -> str:
    """Return the names by family; their descriptions would be two thirds of the screen."""
    from textwrap import fill

    from buddysim.training import schemes

    families = (
        fill(f"  {family}: {', '.join(names)}", 78, subsequent_indent="    ", break_on_hyphens=False)
        for family, names in schemes.by_family().items()
    )
    return "\n".join(["schemes by family (what each does: buddysim list training-scheme)", *families])


def _schemes_of_family(family: str) -> str:
    """A line or more for each scheme of a family: its name and its summary."""
    from textwrap import wrap

    from buddysim.training import schemes

    width = max(map(len, schemes.REGISTRY.names()))
    lines = []
    for name in schemes.by_family()[family]:
        summary = wrap(schemes.REGISTRY.find(name).SUMMARY[name], 76 - width)
        lines += [f"  {name:{width}}  {summary[0]}", *(f"  {'':{width}}  {line}" for line in summary[1:])]
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from buddysim.base.errors import BuddysimError
    from buddysim.base.output import check_outputs
    from buddysim.cli.json_output import is_on_stdout, json_file
    from buddysim.training.request import with_scheme_options

    request = request_of(args)
    if args.against is not None:
        from buddysim.cli.against import print_comparison

        check_outputs([json_file(args)], _inputs(args, {}))
        print_comparison(_with_one_scheme(request, args), args.against, args.json)
        return 0
    schemes = selected_schemes(args, recorded=request.load_network().recorded)
    if args.save_plan is not None and len(schemes) != 1:
        raise BuddysimError(f"--save-plan: {len(schemes)} schemes: expected one (--scheme NAME)")
    scheme_options = _scheme_options(args, schemes)
    check_outputs(_outputs(args), _inputs(args, scheme_options))
    with observed_activations(args, scheme_options) as activations:
        if activations is not None:
            scheme_options = {"activation_mapping": "depth", **scheme_options, "activations": activations}
        request = replace(request, options=with_scheme_options(request.options, scheme_options))
        results, batches, beyond, not_simulated = _simulate(request, schemes, args.max_batch)
    if any(result.counters["fits"] for result in results.values()):
        _write_files(results, args)
    _report(results, batches, beyond, not_simulated, args)
    if args.stalls and not is_on_stdout(args):
        _report_layers(request, results)
    _refuse_where_nothing_fits(results, args)
    return 0


def _write_files(results: Mapping[str, TrainingResult], args: argparse.Namespace) -> None:
    """Write the files that come with the results: none where nothing fits, as the command then ends with an error."""
    if args.timeline is not None:
        from buddysim.report.timeline_file import write_timeline

        write_timeline(args.timeline, {scheme: result.outcome for scheme, result in results.items()})
    if args.save_plan is not None:
        from buddysim.base.output import write_text
        from buddysim.training.plans.plan_file import plan_text

        outcome = next(iter(results.values())).outcome
        write_text(args.save_plan, plan_text(outcome.plan, outcome.network))


def request_of(args: argparse.Namespace) -> TrainingRequest:
    """Return what the arguments ask for, without the schemes and their options."""
    from dataclasses import replace

    from buddysim.base.errors import BuddysimError
    from buddysim.cli.machine_changes import changed_machine
    from buddysim.training.request import TrainingRequest
    from buddysim.training.search import LARGEST_BATCH

    if args.batch is not None and not 1 <= args.batch <= LARGEST_BATCH:
        raise BuddysimError(f"--batch {args.batch}: expected an integer from 1 to {LARGEST_BATCH}")
    request = TrainingRequest.of(
        network=args.network, batch=args.batch, machine=args.machine, calibration=args.calibration, **_options(args)
    ).resolved()
    return replace(request, machine=changed_machine(request.load_machine(), args))


def _with_one_scheme(request: TrainingRequest, args: argparse.Namespace) -> TrainingRequest:
    """The request with the scheme of a measured step: eager where the command line names none."""
    from dataclasses import replace

    from buddysim.base.errors import BuddysimError
    from buddysim.training.request import with_scheme_options

    if args.scheme is None:
        return request
    names = selected_schemes(args, recorded=request.load_network().recorded)
    if len(names) > 1:
        raise BuddysimError(f"--scheme {args.scheme}: expected one scheme with --against, that of the measured step")
    options = with_scheme_options(request.options, _scheme_options(args, names))
    return replace(request, scheme=names[0], options=options)


def selected_schemes(args: argparse.Namespace, recorded: bool = False) -> list[str]:
    """The names, each once; a BuddysimError names the nearest of an unknown one.

    Parameters
    ----------
    recorded : the network is one of today's, recorded operation by operation
    """
    from buddysim.cli.scheme_names import scheme_names
    from buddysim.training import schemes

    def bounded(name: str) -> bool:
        return not getattr(schemes.REGISTRY.find(name), "UNLIMITED", False)

    if args.scheme == "all" or (args.scheme is None and args.memory_budget is not None):
        options_set = [name for name in schemes.options() if getattr(args, _SCHEME_OPTION + name) is not None]
        runnable = schemes.runnable_schemes(options_set, recorded)
        return [name for name in runnable if args.memory_budget is None or bounded(name)]
    if args.scheme is None:
        defaults: tuple[str, ...] = DEFAULT_SCHEMES_TODAY if recorded else DEFAULT_SCHEMES
        if getattr(args, f"{_SCHEME_OPTION}plan") is not None:
            defaults = (*REFERENCES[recorded], "plan")
        return [name for name in defaults if not args.max_batch or bounded(name)]
    return scheme_names(args.scheme, "training scheme")


def _scheme_options(args: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """The values of schemes' options on the command line, by name; each must be an option of a chosen scheme."""
    from buddysim.base.errors import BuddysimError
    from buddysim.training import schemes

    declared = schemes.options()
    values = {name: getattr(args, _SCHEME_OPTION + name) for name in declared}
    values = {name: value for name, value in values.items() if value is not None}
    flags = {declared[name].flag(name): name for name in values}
    if args.observe_activations:
        flags["--observe-activations"] = "activations"
    for flag, name in flags.items():
        owners = schemes.schemes_with(name)
        if not set(owners) & set(names):
            raise BuddysimError(f"{flag}: is an option of {', '.join(owners)}: expected one of these schemes")
    return values


@contextmanager
def observed_activations(args: argparse.Namespace, scheme_options: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield the activations file of a training that is observed now, with ``--observe-activations``; delete it then."""
    from buddysim.base.errors import BuddysimError

    if not args.observe_activations:
        if args.dataset is not None:
            raise BuddysimError("--dataset: no training is observed: expected --observe-activations too")
        yield None
        return
    from buddysim.training.contents.activation_options import SOURCES

    sources = [f"--{name}" for name in SOURCES if name in scheme_options]
    if sources:
        raise BuddysimError(f"--observe-activations and {sources[0]}: expected one source of activations")
    from buddysim.report.progress import progress_bars
    from buddysim.training.contents.observe_training import ObservationSettings, observe_training

    settings = ObservationSettings() if args.dataset is None else ObservationSettings(data=Path(args.dataset))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "observed.maps")
        with progress_bars("iterations") as start_bar:
            bar = start_bar("training") if start_bar else None
            observe_training(path, settings, (lambda done, total, loss: bar(done, total)) if bar else None)
        yield path


def _options(args: argparse.Namespace) -> dict[str, Any]:
    from buddysim.base.option import field_options
    from buddysim.cli.machine_changes import memory_budget_bytes
    from buddysim.training.iteration.plan import TrainingOptions
    from buddysim.training.options.config_options import ConfigOptions

    declared = {**field_options(TrainingOptions), **field_options(ConfigOptions)}
    options = {name: getattr(args, name) for name in declared if name != "memory_bytes"}
    budget = memory_budget_bytes(args)
    return options if budget is None else options | {"memory_bytes": budget}


def _simulate(
    request: TrainingRequest, schemes: list[str], max_batch: bool
) -> tuple[dict[str, TrainingResult], dict[str, int] | None, dict[str, Any], dict[str, str]]:
    """Results by scheme; with --max-batch also the largest batches, and what is missing for one sample more.

    The last mapping says why schemes are not simulated with the options, where others are.
    """
    from dataclasses import replace

    from buddysim.base.errors import BuddysimError
    from buddysim.training.driver import simulate_plan, simulate_request
    from buddysim.training.fit_check import FitChecks
    from buddysim.training.not_simulated import NotSimulatedError
    from buddysim.training.result import TrainingResult, oom_counters
    from buddysim.training.search import LARGEST_BATCH, largest_batch

    network, machine, cost = request.load_network(), request.load_machine(), request.cost_model()

    def simulated(scheme: str, batch: int) -> TrainingResult:
        return TrainingResult.from_outcome(simulate_request(replace(request, scheme=scheme, batch=batch), cost))

    def tried(checks: FitChecks, batch: int) -> TrainingResult:
        plan, program = checks.planned(batch)
        outcome = simulate_plan(checks.network_at(batch), batch, machine, cost, plan, request.options, program)
        return TrainingResult.from_outcome(outcome)

    results, batches, beyond, not_simulated = {}, {}, {}, {}
    outcomes: dict[str, tuple[int, OutOfMemory | None]] = {}  # several schemes may fit as the same one

    def largest(scheme: str) -> TrainingResult:
        checks = FitChecks(network, machine, cost, scheme, request.options)
        if checks.scheme not in outcomes:
            batch = largest_batch(checks)
            outcomes[checks.scheme] = batch, checks.out_of_memory(batch + 1) if 0 < batch < LARGEST_BATCH else None
        batches[scheme], shortage = outcomes[checks.scheme]
        if shortage is not None:
            beyond[scheme] = oom_counters(shortage)
        batch = max(batches[scheme], 1)
        return tried(checks, batch) if checks.scheme == scheme else simulated(scheme, batch)

    for scheme in schemes:
        try:
            results[scheme] = largest(scheme) if max_batch else simulated(scheme, request.batch or 1)
        except NotSimulatedError as error:
            if len(schemes) == 1:
                raise
            not_simulated[scheme] = error.reason
    if not results:
        raise BuddysimError(f"{', '.join(not_simulated)}: {next(iter(not_simulated.values()))}")
    return results, batches if max_batch else None, beyond, not_simulated


def _outputs(args: argparse.Namespace) -> list[str | None]:
    """The files to write; None: not requested."""
    from buddysim.cli.json_output import json_file
    from buddysim.report.timeline_file import check_timeline

    if args.timeline is not None:
        check_timeline(args.timeline)
    if args.parquet is not None:
        from buddysim.base.parquet import check_parquet

        check_parquet()
    return [json_file(args), args.parquet, args.timeline, args.save_plan]


def _inputs(args: argparse.Namespace, scheme_options: Mapping[str, Any]) -> list[str]:
    """Texts that may name a file that the simulation reads."""
    named = [args.network, args.machine, args.calibration, args.against, *scheme_options.values()]
    if args.dataset is not None and Path(args.dataset).is_dir():
        named += map(str, Path(args.dataset).iterdir())
    return [text for text in named if isinstance(text, str)]


def _report(
    results: Mapping[str, TrainingResult],
    batches: Mapping[str, int] | None,
    beyond: Mapping[str, Any],
    not_simulated: Mapping[str, str],
    args: argparse.Namespace,
) -> None:
    from buddysim.base.jsonfile import write_json
    from buddysim.base.parquet import write_parquet
    from buddysim.cli.json_output import is_on_stdout
    from buddysim.cli.machine_changes import changed_keys
    from buddysim.report.training_screen import counter_columns, print_training, shown_counters
    from buddysim.training.search import fastest_that_fits

    content = {scheme: result.to_dict() for scheme, result in results.items()}
    fits = any(result["fits"] for result in content.values())
    if args.parquet is not None and fits:
        write_parquet(args.parquet, content)
    if args.json is not None and (fits or is_on_stdout(args)):
        write_json(args.json, content)
    if is_on_stdout(args):
        return
    if args.columns == "list":
        print("\n".join(counter_columns(content)))
        return
    files = [path for path in (args.json, args.parquet) if path is not None and fits]
    saved = f"full result: {', '.join(files)}" if files else "not saved (--json FILE)"
    stalls = "" if args.stalls else "; stalls by layer: --stalls"
    timeline = f"; timeline: {args.timeline or '--timeline FILE'}"
    fastest = fastest_that_fits(results, args.allow_lossy) if args.memory_budget is not None else None
    print_training(
        content,
        f"{saved}{stalls}{timeline}",
        batches=batches,
        beyond=beyond,
        not_simulated=not_simulated,
        changed=changed_keys(args),
        columns=shown_counters(content, args.columns) if args.columns is not None else None,
        keep_order=args.keep_order,
        every_row=args.all,
        allow_lossy=args.allow_lossy,
        with_decisions=args.decisions,
        with_assumptions=args.assumptions,
        answer=f"fastest scheme that fits in {args.memory_budget}: {fastest}" if fastest is not None else "",
    )


def _report_layers(request: TrainingRequest, results: Mapping[str, TrainingResult]) -> None:
    """Shows the layers that stall, of each scheme, and the link that would remove each stall."""
    from dataclasses import replace

    from buddysim.report.screen import Part, print_screen
    from buddysim.report.stall_table import REMOVED, stall_parts
    from buddysim.training.driver import simulate_request
    from buddysim.training.links import faster_links, layer_stalls
    from buddysim.training.result import TrainingResult

    machine, options = request.load_machine(), request.options
    links = faster_links(machine.links, options.link or machine.link)
    cost = request.cost_model()

    def simulated(result: TrainingResult, link: str) -> TrainingResult:
        again = replace(
            request, batch=result.provenance["batch"], scheme=result.scheme, options=replace(options, link=link)
        )
        return TrainingResult.from_outcome(simulate_request(again, cost))

    parts: list[Part] = []
    for scheme, result in results.items():
        stalls = layer_stalls(result, links, partial(simulated, result))
        parts += ["", *stall_parts(scheme, result.counters["time_ms"], stalls)]
    print_screen([*parts, "", REMOVED])


def _refuse_where_nothing_fits(results: Mapping[str, TrainingResult], args: argparse.Namespace) -> None:
    from buddysim.base.errors import BuddysimError
    from buddysim.report.training_screen import format_out_of_memory

    if any(result.counters["fits"] for result in results.values()):
        return
    best = min(results, key=lambda scheme: (results[scheme].counters["memory.peak_bytes"], scheme))
    batch = results[best].provenance["batch"]
    several = f"none of {', '.join(results)} fits: the nearest is {best}"
    if len(results) == 1:
        several = f"{best} does not fit"
    reason = format_out_of_memory(results[best].counters)
    machine = ["--machine", args.machine] if args.machine is not None else []
    search = shlex.join(["buddysim", "fit", args.network, *machine, "--batch", str(batch)])
    raise BuddysimError(f"{args.network}, batch {batch}: {several}: {reason} (search for a plan that fits: {search})")
