"""``python -m buddysim plot``: figures of results."""

from __future__ import annotations

import argparse
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.cli.sweep import add_store_argument

NAME = "plot"
HELP = """draw a figure; without a name: list the figures

Results that a figure needs and that the store doesn't have are simulated and stored first. A figure that draws a file
of yours gets it as FILE, for example what 'run --json' wrote: plot overview RESULT.json."""

EVERY = "every"
COLUMN_OPTIONS = ("x", "y", "by", "kind")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("figure", metavar="FIGURE", nargs="?", help=f"for example vdnn-fig11; or '{EVERY}'")
    parser.add_argument("file", metavar="FILE", nargs="?", help="the file that the figure draws, if it draws one")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"picture: .png, .svg, .pdf (default: out/FIGURE.png); of {EVERY}: folder",
    )
    add_store_argument(parser)
    columns = parser.add_argument_group("plot sweep STUDY.toml (docs/sweeps.md)")
    columns.add_argument("--x", metavar="COLUMN", help="horizontal axis (default: the first number that varies)")
    columns.add_argument("--y", metavar="COLUMN", help="vertical axis: a counter, time_vs_ideal, .. (default: time)")
    columns.add_argument("--by", metavar="COLUMN", help="a line for each value (default: what varies besides)")
    columns.add_argument("--kind", choices=("line", "heat"), help="lines, or a map with --by upwards (default: line)")
    parser.add_argument("--fresh", action="store_true", help="simulate again what is there")


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
                f"plot {args.figure}: takes no result file: its results are in the store (--store)"
            )
    elif args.file is None:
        file, description = figure.FILE
        raise BuddysimError(f"plot {args.figure}: expected {description}: plot {args.figure} {file}")


def _draw(name: str, path: Path, make_folder: bool, args: argparse.Namespace) -> None:
    from buddysim.figures import REGISTRY, Source, plot
    from buddysim.figures.drawing.save import check_picture
    from buddysim.sweep.store import Store

    if make_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    check_picture(path, [args.file])
    store = Store.at(args.store)
    named = {option: getattr(args, option) for option in COLUMN_OPTIONS if getattr(args, option) is not None}
    if named and name != "sweep":
        raise BuddysimError(f"plot {name}: --{next(iter(named))} is of plot sweep")
    source = Source(store, args.fresh, args.file, named)
    plot(name, path, source)
    if args.file is not None:
        print(f"{path}: {args.file}")
    else:
        title = REGISTRY.find(name).TITLE
        print(f"{path}: {title}; results in {store.folder}, {source.training.simulated} simulated now")
