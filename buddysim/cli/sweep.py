"""``python -m buddysim sweep``: many points of either engine, each simulated once."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from buddysim.sweep.api import Maker
    from buddysim.sweep.axis import Axis
    from buddysim.sweep.plan import SweepPlan
    from buddysim.sweep.runner import EventHandler, SweepSummary
    from buddysim.sweep.study import Study

NAME = "sweep"
TASK = "simulate"
ORDER = 130
HELP = """simulate every point of a study and store its results

  sweep STUDY.toml                            (docs/reference/study-files.md)
  sweep TRACE.. --set link.bandwidth=50GB/s,100GB/s --scheme buddy,ideal
  sweep train NETWORK.. --batch 32,64 --scheme vdnn-dyn,cdma-zv

Values are separated by commas; a value that has commas is in brackets: --lora [16,q_proj],8. Every combination is a
point. Results go to a store, one file each: what is there is
not simulated again, and an interrupted sweep goes on with the same command. See: results, diff, plot sweep."""

TRAIN = "train"
_AXIS = "axis_"
_AXIS_GROUPS = {"replay": "axes of replays", "training": "axes of training", "analysis": "axes of analyses"}
EXIT_FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", metavar="STUDY.toml|TRACE|train NETWORK", nargs="+", help="a study file, traces, or train and networks"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE[,VALUE..]",
        action="append",
        nargs="+",
        default=[],
        dest="settings",
        help="values of a machine key, for example l2.size=2MiB,4MiB; may be repeated",
    )
    parser.add_argument(
        "--zip", metavar="NAME,NAME..", action="append", default=[], help="axes that vary together, value by value"
    )
    parser.add_argument(
        "--exclude",
        metavar="NAME=VALUE",
        nargs="+",
        action="append",
        default=[],
        help="settings of points that are left out",
    )
    parser.add_argument(
        "--baseline-set",
        metavar="KEY=VALUE",
        nargs="+",
        action="append",
        help="machine keys of the baselines, which are simulated, too (replays: ideal)",
    )
    parser.add_argument(
        "--baseline", action="store_true", help="simulate the baseline of each point, too, on the machine of the point"
    )
    add_worker_arguments(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the number of points and the estimated time and memory, simulate nothing",
    )
    parser.add_argument("--rerun", action="store_true", help="simulate points that have a result again")
    parser.add_argument("--yes", action="store_true", help="simulate more than a million points")
    parser.add_argument(
        "--json-lines", action="store_true", help="print every event as a line of JSON on standard output"
    )
    parser.add_argument("--list-axes", action=_ListAxes, nargs=0, help="print the axes of studies and exit")
    _add_axes(parser)


def add_worker_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the store and of the workers."""
    add_store_argument(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers",
        metavar="N",
        type=int,
        help="number of worker processes; 1: this process, without Dask (default: one per CPU)",
    )
    where.add_argument("--scheduler", metavar="ADDRESS", help="address of a Dask scheduler, tcp://HOST:PORT")
    where.add_argument(
        "--slurm",
        metavar="FILE.toml",
        help="file that describes Slurm jobs which simulate (docs/how-to/run-on-a-cluster.md)",
    )


def add_store_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option of the result store."""
    parser.add_argument(
        "--store",
        metavar="FOLDER",
        help="folder of the result store (default: $BUDDYSIM_STORE, else out/store; made if needed)",
    )


def _add_axes(parser: argparse.ArgumentParser) -> None:
    """An argument for every axis of the engines."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for title, name, axis in _axes():
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        groups[title].add_argument(
            f"--{name.replace('_', '-')}",
            dest=_AXIS + name,
            metavar=f"{axis.metavar}[,..]",
            help=axis.help.replace("%", "%%"),
        )


def _axes() -> Iterator[tuple[str, str, Axis]]:
    """The axes of the engines, each once: title of its group, name, axis."""
    from buddysim.sweep.engines import find

    seen = set()
    for engine in map(find, _AXIS_GROUPS):
        for name, axis in engine.axes().items():
            if name != engine.SUBJECT and name not in seen:
                seen.add(name)
                yield _AXIS_GROUPS[engine.NAME], name, axis


class _ListAxes(argparse.Action):
    """Prints the axes and exits, whatever else is on the command line."""

    def __call__(self, parser: argparse.ArgumentParser, *arguments: object) -> None:
        from buddysim.report.screen import Column, ScreenTable, print_screen

        rows: list[list[str]] = []
        for title, name, axis in _axes():
            if [title] not in rows:
                rows += [*([[]] if rows else []), [title]]
            default = "" if axis.default is None else str(axis.default)
            rows.append([f"  {name}", axis.metavar, default, axis.help])
        columns = [Column("axis", left=True), Column("values", left=True, priority=2)]
        columns += [Column("default", left=True, priority=1), Column("meaning", left=True, text=True)]
        print_screen([ScreenTable(columns, rows), "", "Any machine key is an axis, too: --set KEY=VALUE,VALUE.."])
        parser.exit()


def run(args: argparse.Namespace) -> int:
    from buddysim.report.sweep_progress import json_lines, screen
    from buddysim.sweep.api import executor_maker
    from buddysim.sweep.plan import make_plan
    from buddysim.sweep.store import Store

    make = executor_maker(args.workers, args.scheduler, args.slurm)
    plan = make_plan(_study(args), Store.at(args.store), args.rerun, lambda count: _go_on(count, args))
    events = json_lines() if args.json_lines else screen(len(plan.missing))
    if not args.dry_run:
        return EXIT_FAILED if run_plan(plan, make, events).failures else 0
    with events as on_event:
        on_event(_planned(plan) | _estimated(plan))
    return 0


def run_plan(plan: SweepPlan, make: Maker, events: AbstractContextManager[EventHandler]) -> SweepSummary:
    """Simulate what a plan lacks, and show all events, an interruption too."""
    from buddysim.sweep.api import run as run_missing

    with events as on_event:
        on_event(_planned(plan))
        try:
            summary = run_missing(plan, make, on_event)
        except KeyboardInterrupt:
            on_event({"event": "interrupted"})
            raise
        on_event(_ended(plan, summary))
    return summary


def _study(args: argparse.Namespace) -> Study:
    from buddysim.base.errors import BuddysimError
    from buddysim.sweep.study import StudyReader
    from buddysim.sweep.study_file import read_study
    from buddysim.trace.shipped import trace_path

    first, *others = args.what
    values = _values(args)
    if first.endswith(".toml") and first != TRAIN:
        if others:
            raise BuddysimError(f"sweep: {first} is a study file: expected it alone, not {others[0]} too")
        if args.zip or args.exclude or args.baseline_set or args.baseline:
            raise BuddysimError(f"sweep: --zip, --exclude and --baseline are for studies without a file: see {first}")
        return read_study(first, values)
    engine, subjects = ("training", others) if first == TRAIN else ("replay", args.what)
    subject = "network" if first == TRAIN else "trace"
    if not subjects:
        raise BuddysimError("sweep train: no network: expected at least one, for example: sweep train vgg19,resnet50")
    names = _split(subjects)
    if engine == "replay":
        names = [str(trace_path(name)) for name in names]
    content: dict[str, Any] = {"engine": engine, "grid": {subject: names, **values}, "title": "sweep"}
    if engine == "replay":
        content["grid"].setdefault("scheme", ["buddy", "ideal"])
    content["zip"] = [_zipped(content["grid"], group) for group in args.zip]
    content["exclude"] = [_parsed(group, "--exclude") for group in args.exclude]
    if args.baseline or args.baseline_set:
        groups = args.baseline_set or []
        content["baseline"] = _parsed([text for group in groups for text in group], "--baseline-set")
    return StudyReader("sweep").read(content)


def _values(args: argparse.Namespace) -> dict[str, list[str]]:
    """The values on the command line, by name."""
    from buddysim.base.settings import parse_settings

    settings = parse_settings(text for group in args.settings for text in group)
    values = {name: _split([str(text)]) for name, text in settings.items()}
    axes = {name.removeprefix(_AXIS): text for name, text in vars(args).items() if name.startswith(_AXIS)}
    return {name: _split([text]) for name, text in axes.items() if text is not None} | values


#: A value: what is in brackets, or what has no comma.
_VALUE = re.compile(r"\s*(?:\[([^\[\]]*)\]|([^,]*))\s*(?:,|$)")


def _split(texts: list[str]) -> list[str]:
    """Values of an axis, which commas separate; those within brackets are a part of their value."""
    parts = [inner or plain for text in texts for inner, plain in _VALUE.findall(text)]
    return [part.strip() for part in parts if part.strip()]


def _zipped(grid: dict[str, list[str]], names: str) -> dict[str, list[str]]:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import hint

    values = {}
    for name in _split([names]):
        if name not in grid:
            raise BuddysimError(f"--zip {names}: {name}: the study gives it no values{hint(name, grid)}")
        values[name] = grid.pop(name)
    return values


def _parsed(texts: list[str], option: str) -> dict[str, Any]:
    from buddysim.base.settings import parse_settings

    return {name: _split([str(text)]) if option == "--exclude" else text for name, text in
            parse_settings(texts, option).items()}  # fmt: skip


def _go_on(count: int, args: argparse.Namespace) -> bool:
    if args.yes or args.dry_run:
        return True
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return False
    print(f"{count:,} points. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _planned(plan: SweepPlan) -> dict[str, Any]:
    """The first event: what there is to do."""
    from buddysim.sweep.why_missing import changes, edited

    notes = [*plan.store.notes, *changes(plan), edited(plan)]
    plan.store.notes.clear()
    return {
        "event": "planned",
        "requested": len(plan.points),
        "stored": plan.n_stored,
        "missing": len(plan.missing),
        "store": str(plan.store.folder),
        "notes": [text for text in notes if text],
    }


def _estimated(plan: SweepPlan) -> dict[str, Any]:
    """Time and memory that the missing points will take, for the first event of a dry run."""
    from buddysim.sweep.api import measured
    from buddysim.sweep.estimate import Estimate

    if plan.missing:
        plan.check_machines()
    estimate = Estimate(measured(plan) if plan.missing else ())
    seconds = [estimate.seconds(plan.points[name]) for name in plan.missing]
    known = [each for each in seconds if each is not None]
    return {
        "cpu_s": sum(known) / len(known) * len(plan.missing) if known else None,
        "measured_points": len(known),
        "memory_bytes": max((estimate.memory_bytes(plan.points[name]) for name in plan.missing), default=None),
    }


def _ended(plan: SweepPlan, summary: SweepSummary) -> dict[str, Any]:
    return {
        "event": "ended",
        "requested": len(plan.points),
        "store": str(plan.store.folder),
        "varied": plan.study.varied,
        "done": summary.done,
        "failed": len(summary.failures),
        "simulated_s": summary.simulated_s,
        "wall_s": summary.wall_s,
        "failures": summary.failures,
    }
