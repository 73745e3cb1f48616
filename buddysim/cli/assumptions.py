"""``python -m buddysim assumptions``: what the assumed values of a machine decide on a trace."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from buddysim.machine.assumptions import Assumption
    from buddysim.report.screen import Part
    from buddysim.sweep.assumptions import Decided
    from buddysim.sweep.axis import Value

NAME = "assumptions"
TASK = "simulate"
ORDER = 135
HELP = """show what each assumed value of the machine decides on a trace

A value is assumed if its source says so, or if sources give more than one. The trace is replayed with the least and
largest value that sources give, else with half and double or with every other choice: under the scheme and under the
baseline, on the same machine. A row per key has the least and the largest slowdown, those that differ most first.
Results go to a store, as those of sweep; an interrupted command goes on with the same command."""

#: Rows with less between their ends are named, not shown.
_SHOWN_FROM = 0.0005


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.base.option import field_options
    from buddysim.cli.completion import completes
    from buddysim.cli.json_output import add_json_argument
    from buddysim.cli.machine_changes import add_set_argument
    from buddysim.cli.option_arguments import add_options
    from buddysim.cli.sweep import add_worker_arguments
    from buddysim.replay.request import ReplayRequest
    from buddysim.replay.schemes import DEFAULT

    options = field_options(ReplayRequest)
    add_options(parser, {name: options[name] for name in ("trace", "machine")})
    completes(
        parser.add_argument("--scheme", metavar="NAME", default=DEFAULT, help="replay scheme (default: %(default)s)"),
        "replay scheme",
    )
    add_set_argument(parser, "link.header_size=16B")
    parser.add_argument("--targets", metavar="FILE", help="targets file of 'profile' (default: profiled on the trace)")
    parser.add_argument("--only", metavar="KEY[,KEY...]", help="keys, or sections as metadata_cache (default: all)")
    add_worker_arguments(parser)
    add_json_argument(parser, "the slowdowns of each key")


def run(args: argparse.Namespace) -> int:
    from buddysim.base.output import check_outputs
    from buddysim.cli.json_output import is_on_stdout, json_file, write_plain_json
    from buddysim.cli.machine_changes import changed_machine
    from buddysim.cli.sweep import EXIT_FAILED, run_plan
    from buddysim.machine import Machine
    from buddysim.machine.assumptions import assumptions
    from buddysim.replay.schemes import REGISTRY
    from buddysim.report.screen import print_screen
    from buddysim.report.sweep_progress import screen
    from buddysim.sweep.api import executor_maker
    from buddysim.sweep.assumptions import decided, study_of
    from buddysim.sweep.plan import make_plan
    from buddysim.sweep.store import Store

    check_outputs([json_file(args)], [args.trace, args.targets])
    machine = changed_machine(Machine.load(args.machine), args)
    assumed = _selected(assumptions(machine, REGISTRY.find(args.scheme).SECTIONS), args.only)
    settings = _settings(args)
    study = study_of(settings, assumed)
    study.check()
    plan = make_plan(study, Store.at(args.store))
    summary = run_plan(plan, executor_maker(args.workers, args.scheduler, args.slurm), screen(len(plan.missing)))
    rows = decided(settings, assumed, plan.store)
    write_plain_json(args, [_record(row) for row in rows])
    if not is_on_stdout(args):
        print_screen(_parts(rows, f"{args.scheme} on {machine.name}"))
    return EXIT_FAILED if summary.failures else 0


def _settings(args: argparse.Namespace) -> dict[str, Value]:
    """The settings of the point that all others are compared with."""
    from buddysim.cli.machine_changes import changed_keys
    from buddysim.sweep.axis import file_value
    from buddysim.sweep.engines.machines import machine_name
    from buddysim.trace.shipped import trace_path

    settings: dict[str, Value] = {
        "trace": file_value(trace_path(args.trace)),
        "machine": machine_name(args.machine),
        "scheme": args.scheme,
    }
    if args.targets is not None:
        settings["targets"] = file_value(args.targets)
    return settings | {key: str(value) for key, value in changed_keys(args).items()}


def _selected(assumed: Sequence[Assumption], only: str | None) -> list[Assumption]:
    """Those of `--only`: keys, and all keys of sections."""
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import hint

    if only is None:
        return list(assumed)
    selected: list[Assumption] = []
    for name in (text.strip() for text in only.split(",")):
        named = [one for one in assumed if one.key == name or one.key.startswith(f"{name}.")]
        if not named or not name:
            known = [one.key for one in assumed]
            raise BuddysimError(f"--only {only}: {name}: no key with an assumed value{hint(name, known)}")
        selected += [one for one in named if one not in selected]
    return selected


def _record(row: Decided) -> dict[str, Any]:
    one = row.assumption
    return {"key": one.key, "value": one.value, "slowdowns": dict(row.slowdowns), "source": one.source}


def _parts(rows: Sequence[Decided], title: str) -> list[Part]:
    """The screen: what decides something as a table, the names of the rest."""
    from buddysim.report.screen import Column, ScreenTable

    columns = [Column("key", left=True, wrap_to=34), Column("value", priority=1, wrap_to=12)]
    columns += [
        Column(heading, group=f"{end} slowdown", wrap_to=12) for end in ("least", "largest") for heading in ("", "with")
    ]
    columns.append(Column("source", left=True, text=True, priority=2))
    shown = [row for row in rows if row.span - 1 >= _SHOWN_FROM]
    cells = [
        [
            row.assumption.key, row.assumption.value, f"{row.slowdowns[row.least]:.3f}", row.least,
            f"{row.slowdowns[row.largest]:.3f}", row.largest, row.assumption.source.removeprefix("default: "),
        ]
        for row in shown
    ]  # fmt: skip
    parts: list[Part] = []
    if rows:
        first = rows[0]
        parts += [f"{title}: slowdown {first.slowdowns[first.assumption.value]:.3f}", ""]
    parts.append(ScreenTable(columns, cells))
    single = ", ".join(row.assumption.key for row in rows if len(row.slowdowns) == 1)
    same = ", ".join(row.assumption.key for row in rows if row not in shown and len(row.slowdowns) > 1)
    parts += ["", f"less than {100 * _SHOWN_FROM:.2f} % between both ends: {same}"] if same else []
    parts += ["", f"without another value: {single}"] if single else []
    return parts
