"""``python -m buddysim plot``: figures of results."""

from __future__ import annotations

import argparse
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.papers.saved import FOLDER

NAME = "plot"
HELP = """draw a figure; without a name: list the figures

Results that a figure needs and that aren't saved yet are simulated and saved first. A figure that draws a file of yours
gets it as FILE, for example what 'run --json' wrote: plot overview RESULT.json."""

EVERY = "every"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("figure", metavar="FIGURE", nargs="?", help=f"for example vdnn-fig11; or '{EVERY}'")
    parser.add_argument("file", metavar="FILE", nargs="?", help="the file that the figure draws, if it draws one")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"picture: .png, .svg, .pdf (default: out/FIGURE.png); of {EVERY}: folder",
    )
    parser.add_argument(
        "--results", metavar="DIR", default=str(FOLDER), help=f"where results are saved (default: {FOLDER})"
    )
    parser.add_argument("--fresh", action="store_true", help="simulate again what is saved")


def run(args: argparse.Namespace) -> int:
    from buddysim.figures import REGISTRY

    if args.figure is None:
        for name, figure in REGISTRY.items():
            print(f"{name:12}  {figure.TITLE}{_drawn_file(figure)}")
    elif args.figure == EVERY:
        if args.file is not None:
            raise BuddysimError(f"plot {EVERY}: takes no file: it draws the figures that need none")
        folder = Path("out") if args.output is None else Path(args.output)
        for name, figure in REGISTRY.items():
            if not hasattr(figure, "FILE"):
                _draw(name, folder / f"{name}.png", True, args)
    else:
        _check_file(args)
        default = Path("out") / f"{args.figure}.png"
        _draw(args.figure, default if args.output is None else Path(args.output), args.output is None, args)
    return 0


def _drawn_file(figure: object) -> str:
    file, description = getattr(figure, "FILE", (None, None))
    return f" ({file}: {description})" if file else ""


def _check_file(args: argparse.Namespace) -> None:
    """Refuses a figure without the file that it draws, and a file for a figure that draws none."""
    from buddysim.figures import REGISTRY

    figure = REGISTRY.find(args.figure)
    if not hasattr(figure, "FILE"):
        if args.file is not None:
            raise BuddysimError(
                f"plot {args.figure}: takes no result file: its results are in --results {args.results}"
            )
    elif args.file is None:
        file, description = figure.FILE
        raise BuddysimError(f"plot {args.figure}: expected {description}: plot {args.figure} {file}")


def _draw(name: str, path: Path, make_folder: bool, args: argparse.Namespace) -> None:
    from buddysim.figures import REGISTRY, Source, plot
    from buddysim.figures.drawing.save import check_picture

    if make_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    check_picture(path, [args.file])
    source = Source(args.results, args.fresh, args.file)
    plot(name, path, source)
    if args.file is not None:
        print(f"{path}: {args.file}")
    else:
        title = REGISTRY.find(name).TITLE
        print(f"{path}: {title}; results in {args.results}, {source.training.simulated} simulated now")
