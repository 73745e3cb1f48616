"""``python -m buddysim plot``: the papers' figures, drawn from saved results."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from buddysim import figures
from buddysim.base.errors import BuddysimError

NAME = "plot"
HELP = """draw a figure from saved results; without a name: list the figures

Results that a figure needs and that aren't saved yet are simulated and saved first. 'overview' draws what 'run --json'
wrote: plot overview RESULT.json."""

RESULTS = Path("out") / "training"
PICTURES = (".png", ".svg", ".pdf")
OVERVIEW = "overview"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("figure", metavar="FIGURE", nargs="?", help="for example vdnn-fig11; or 'every'")
    parser.add_argument("result", metavar="RESULT.json", nargs="?", help="for overview: what 'run --json' wrote")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="picture: .png, .svg, .pdf (default: out/FIGURE.png); of every: folder",
    )
    parser.add_argument(
        "--results", metavar="DIR", default=str(RESULTS), help=f"where results are saved (default: {RESULTS})"
    )
    parser.add_argument("--fresh", action="store_true", help="simulate again what is saved")


def run(args: argparse.Namespace) -> int:
    figures = known_figures()
    if args.figure is None:
        for name in figures:
            print(f"{name:12}  {title(name)}")
        return 0
    if args.figure == OVERVIEW:
        return _overview(args)
    if args.result is not None:
        raise BuddysimError(f"plot {args.figure}: takes no result file: its results are in --results {args.results}")
    if args.figure == "every":
        folder = Path(args.output or "out")
        for name in figures:
            _draw(name, folder / f"{name}.png", args)
        return 0
    if args.figure not in (*figures, OVERVIEW):
        from buddysim.base.hints import hint, shortened

        near = hint(args.figure, figures)
        raise BuddysimError(f"figure {shortened(args.figure)} is unknown: expected one of {', '.join(figures)}{near}")
    _draw(args.figure, Path(args.output or f"out/{args.figure}.png"), args)
    return 0


def known_figures() -> list[str]:
    """The figures' names, in the order of the papers: a module ``vdnn_fig11`` of plots/ is the figure vdnn-fig11."""
    names = (path.stem for path in Path(figures.__path__[0]).glob("*_fig*.py"))
    return [name.replace("_", "-") for name in sorted(names, key=lambda name: (name[:1] != "v", *_parts(name)))]


def title(name: str) -> str:
    """What a figure shows."""
    return str(_module(name).TITLE)


def _parts(name: str) -> tuple[str, int]:
    paper, _, number = name.partition("_fig")
    return paper, int(number) if number.isdecimal() else 0


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"buddysim.figures.{name.replace('-', '_')}")


def _check_picture(path: Path, default_folder: bool) -> None:
    from buddysim.base.atomic import check_writable

    if path.suffix.lower() not in PICTURES:
        raise BuddysimError(f"{path}: expected a name that ends in {', '.join(PICTURES)}")
    if default_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    check_writable(path)


def _draw(name: str, path: Path, args: argparse.Namespace) -> None:
    _check_picture(path, args.output is None or args.figure == "every")
    module = _module(name)
    runs = importlib.import_module("buddysim.figures.runs").Runs(Path(args.results), args.fresh)
    figure = module.draw(module.data(runs))
    save(figure, path)
    print(f"{path}: {module.TITLE}; results in {args.results}, {runs.simulated} simulated now")


def save(figure: Any, path: Path) -> None:
    """Writes a picture, the same bytes for the same figure."""
    import matplotlib

    from buddysim.base.atomic import write_whole

    form = path.suffix.lower().lstrip(".")
    undated = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    with matplotlib.rc_context({"svg.hashsalt": "buddysim", "svg.fonttype": "none"}):
        write_whole(path, lambda unfinished: figure.savefig(unfinished, format=form, metadata=undated))


def _overview(args: argparse.Namespace) -> int:
    overview = _module(OVERVIEW)
    if args.result is None:
        raise BuddysimError("plot overview: expected the file that 'run --json' wrote: plot overview RESULT.json")
    path = Path(args.output or f"out/{OVERVIEW}.png")
    _check_picture(path, args.output is None)
    save(overview.draw(overview.load(Path(args.result))), path)
    print(f"{path}: {args.result}")
    return 0
