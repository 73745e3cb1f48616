"""``python -m buddysim capture``: real programs as trace files, one sub-command per package of `buddysim.capture`."""

from __future__ import annotations

import argparse
import pkgutil
from importlib import import_module
from types import ModuleType

from buddysim import capture

NAME = "capture"
HELP = "turn a run of a real program into a trace file"


def kinds() -> list[ModuleType]:
    """The packages that capture a kind of program."""
    names = sorted(module.name for module in pkgutil.iter_modules(capture.__path__) if module.ispkg)
    modules = (import_module(f"buddysim.capture.{name}") for name in names)
    return [module for module in modules if hasattr(module, "NAME")]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    subparsers = parser.add_subparsers(title="what", dest="kind", metavar="WHAT", required=True)
    for kind in kinds():
        subparser = subparsers.add_parser(
            kind.NAME,
            help=kind.HELP.partition("\n")[0],
            description=kind.HELP,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        kind.add_arguments(subparser)
        subparser.set_defaults(capture=kind.run)


def run(args: argparse.Namespace) -> int:
    return int(args.capture(args))
