"""``python -m buddysim plot``: figures of results."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.cli.sweep import add_worker_arguments

if TYPE_CHECKING:
    from buddysim.figures import ResultSource

NAME = "plot"
TASK = "look"
ORDER = 330
HELP = """plot a figure and write it as PDF and SVG

Without a name, the command lists the figures. -o names one file instead of a .pdf and a .svg. Results that are not in
the store are simulated first; figures of the Buddy Compression study (fig3 to fig13) do so with --run alone. Some
figures plot a file of the user: plot overview RESULT.json.
--width, --font and --no-title adapt a figure to a column."""

ALL, PAPERS, STUDY = "all", "papers", "study"
FIGURE_OPTIONS = ("x", "y", "by", "kind", "network", "batch", "machine", "scale", "only", "workloads")
STUDY_OPTIONS = ("scale", "only", "workloads")
_PAPERS = {"vdnn": "vDNN", "cdma": "cDMA", "gist": "Gist", "cswap": "CSWAP"}
GROUPS = (ALL, PAPERS, STUDY)
SUFFIXES = (".pdf", ".svg")
INCHES = {"in": 1.0, "mm": 1 / 25.4, "cm": 1 / 2.54}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes

    figure = parser.add_argument(
        "figure",
        metavar="FIGURE",
        nargs="?",
        help=f"for example vdnn-fig11; '{STUDY}': fig3 to fig13; '{PAPERS}': those of the other papers; '{ALL}': both",
    )
    completes(figure, "figure")
    parser.add_argument("file", metavar="FILE", nargs="?", help="the file that the figure draws, if it draws one")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="file: .png, .svg, .pdf (default: out/FIGURE.pdf and out/FIGURE.svg); "
        f"of {STUDY}, {PAPERS}, {ALL}: a folder",
    )
    add_worker_arguments(parser)
    columns = parser.add_argument_group("plot sweep STUDY.toml (docs/reference/study-files.md)")
    columns.add_argument("--x", metavar="COLUMN", help="horizontal axis (default: the first number that varies)")
    columns.add_argument("--y", metavar="COLUMN", help="vertical axis: a counter or slowdown_vs_ideal (default: time)")
    columns.add_argument("--by", metavar="COLUMN", help="a line for each value (default: the other axes)")
    columns.add_argument(
        "--kind", choices=("line", "heatmap"), help="lines, or a heatmap with --by as its vertical axis (default: line)"
    )
    point = parser.add_argument_group("plot trade-off")
    completes(
        point.add_argument("--network", metavar="NAME|FILE.toml", help="network to train (default: vgg16)"), "network"
    )
    point.add_argument("--batch", metavar="N", help="samples of one iteration (default: 64)")
    machine = point.add_argument("--machine", metavar="NAME", help="machine that trains (default: titan-x)")
    completes(machine, "training machine")
    _add_study_arguments(parser)
    parser.add_argument("--rerun", action="store_true", help="simulate points that have a result again")
    look = parser.add_argument_group("for print")
    look.add_argument("--width", metavar="SIZE", type=_inches, help="width of the figure: 3.3in, 84mm or 8.4cm")
    look.add_argument("--font", metavar="PT", type=_positive, help="points of the labels of axes, for example 8")
    look.add_argument("--no-title", action="store_true", help="leave the title to the caption")
    look.add_argument("--dpi", metavar="N", type=_positive, help="dots per inch, of .png")


def _add_study_arguments(parser: argparse.ArgumentParser) -> None:
    study = parser.add_argument_group("figures of the Buddy Compression study: fig3 to fig13")
    study.add_argument(
        "--run", dest="run_first", action="store_true", help="first make the traces and simulate what the store lacks"
    )
    study.add_argument("--scale", metavar="NAME", help="scale of the workloads: small, medium, .. (default: medium)")
    study.add_argument("--only", metavar="NAME[,NAME...]", help="workloads to draw (default: all sixteen)")
    study.add_argument(
        "--workloads",
        metavar="FOLDER",
        help="folder of the traces, as for 'workloads make -o' (default: out/workloads)",
    )


def _inches(text: str) -> float:
    number = next((text.removesuffix(unit) for unit in INCHES if text.endswith(unit)), "")
    unit = text.removeprefix(number)
    try:
        inches = float(number) * INCHES[unit]
    except (ValueError, KeyError):
        inches = 0
    if not 1 <= inches <= 100:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a width from 1in to 100in, such as 3.3in or 84mm")
    return inches


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 1 <= number <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a number from 1 to 10000")
    return number


def run(args: argparse.Namespace) -> int:
    from buddysim.figures import REGISTRY
    from buddysim.report.screen import Part, description_table, print_screen

    if args.figure is None:
        by_paper: dict[str, list[tuple[str, str]]] = {}
        for name, figure in REGISTRY.items():
            by_paper.setdefault(_paper(name, figure), []).append((name, figure.TITLE + _plotted_file(figure)))
        parts: list[Part] = []
        for paper, rows in by_paper.items():
            parts += [*([""] if parts else []), description_table((paper, "description"), rows)]
        print_screen(parts)
    elif args.figure in GROUPS:
        if args.file is not None:
            raise BuddysimError(f"plot {args.figure}: {args.file}: unexpected file: expected plot {args.figure} alone")
        folder = Path("out") if args.output is None else Path(args.output)
        names = [name for name, figure in REGISTRY.items() if is_in_group(figure, args.figure)]
        _draw_all(names, folder, args)
    else:
        _check_file(args)
        outputs = [Path("out", f"{args.figure}{suffix}") for suffix in SUFFIXES]
        _draw(args.figure, outputs if args.output is None else [Path(args.output)], args)
    return 0


def _paper(name: str, figure: object) -> str:
    """Return the heading under which a figure is listed."""
    begin = name.partition("-")[0]
    return "Buddy Compression" if is_study(figure) else _PAPERS.get(begin, "figure")


def is_in_group(figure: object, group: str) -> bool:
    """Whether a group has a figure: only figures that need no file are in one."""
    return not hasattr(figure, "FILE") and (group == ALL or is_study(figure) == (group == STUDY))


def is_study(figure: object) -> bool:
    """Whether a figure is one of the Buddy Compression study."""
    return bool(getattr(figure, "STUDY", False))


def _draw_all(names: Sequence[str], folder: Path, args: argparse.Namespace) -> None:
    """Draws figures into a folder; of the study what the store has something of, even if points failed."""
    from buddysim.base.terminal import warn
    from buddysim.figures import REGISTRY
    from buddysim.papers.buddy.buddy_study import NoStoredResults

    failed = None
    if args.run_first:
        try:
            study = [name for name in names if is_study(REGISTRY.find(name))]
            _fill(study, _source(STUDY if args.figure == ALL else args.figure, args), args)
        except BuddysimError as error:
            failed = error
    for name in names:
        try:
            _draw(name, [folder / f"{name}{suffix}" for suffix in SUFFIXES], args)
        except NoStoredResults as error:
            warn(f"left out: {error}")
    if failed is not None:
        raise failed


def _source(name: str, args: argparse.Namespace) -> ResultSource:
    """What figures get their numbers from, with the options that a figure takes."""
    from buddysim.figures import REGISTRY, ResultSource
    from buddysim.sweep.store import Store

    named = {option: getattr(args, option) for option in FIGURE_OPTIONS if getattr(args, option) is not None}
    taken = STUDY_OPTIONS if name == STUDY else getattr(REGISTRY.find(name), "OPTIONS", ())
    for option in named:
        if option not in taken and not (args.figure == ALL and option in STUDY_OPTIONS):
            owner = next(one for one, figure in REGISTRY.items() if option in getattr(figure, "OPTIONS", ()))
            raise BuddysimError(f"plot {name}: --{option}: an option of plot {owner}: expected plot {owner}")
    options = {option: text for option, text in named.items() if option in taken}
    return ResultSource(Store.at(args.store), args.rerun, args.file, options)


def _fill(names: Sequence[str], source: ResultSource, args: argparse.Namespace) -> None:
    """Makes what some figures of the study lack."""
    from functools import partial

    from buddysim.base.terminal import say
    from buddysim.figures import REGISTRY
    from buddysim.papers.buddy.run_missing import comparison_requests, run_missing
    from buddysim.sweep.api import executor_maker

    asks: list[Callable[[], object]] = [partial(REGISTRY.find(name).data, source) for name in names]
    if args.figure in (ALL, STUDY):
        asks += comparison_requests(source.buddy)
    run_missing(source.buddy, asks, executor_maker(args.workers, args.scheduler, args.slurm), lambda event: None, say)


def _plotted_file(figure: object) -> str:
    file, description = getattr(figure, "FILE", (None, None))
    return f" ({file}: {description})" if file else ""


def _check_file(args: argparse.Namespace) -> None:
    """Refuses a figure without the file that it draws, and a file for a figure that draws none."""
    from buddysim.figures import REGISTRY

    figure = REGISTRY.find(args.figure)
    if not hasattr(figure, "FILE"):
        if args.file is not None:
            raise BuddysimError(f"plot {args.figure}: {args.file}: unexpected file: expected results in --store")
    elif args.file is None and not hasattr(figure, "DEFAULT_FILE"):
        file, description = figure.FILE
        raise BuddysimError(f"plot {args.figure}: no file: expected {description}: plot {args.figure} {file}")


def _draw(name: str, paths: Sequence[Path], args: argparse.Namespace) -> None:
    from buddysim.figures import REGISTRY, FigureFormat, plot
    from buddysim.plotting.save import check_figure_file
    from buddysim.report.screen import print_screen

    if args.run_first and args.figure != ALL and not is_study(REGISTRY.find(name)):
        raise BuddysimError(f"plot {name}: --run: an option of plot {STUDY}: expected no --run")
    for path in paths:
        if args.output is None or args.figure in GROUPS:
            path.parent.mkdir(parents=True, exist_ok=True)
        check_figure_file(path, [args.file])
    source = _source(name, args)
    if args.run_first and args.figure not in GROUPS:
        _fill([name], source, args)
    plot(name, paths, source, FigureFormat(args.width, args.font, not args.no_title, args.dpi))
    files = ", ".join(map(str, paths))
    title = REGISTRY.find(name).TITLE
    if args.file is not None:
        print_screen([f"{files}: {title}; plotted from {args.file}"])
    else:
        print_screen([f"{files}: {title}; results in {_folder(source)}, {source.training.simulated} simulated now"])


def _folder(source: ResultSource) -> Path:
    assert source.training.store is not None
    return source.training.store.folder
