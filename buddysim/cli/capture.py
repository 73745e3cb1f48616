"""``python -m buddysim capture``: real programs as trace files, one sub-command per kind of program.

A kind is a package in `buddysim.capture` with ``NAME``, ``HELP``, ``add_arguments(parser)`` and ``run(args) -> int``,
and ``ORDER``, its position in lists.
"""

from __future__ import annotations

import argparse
import pkgutil
from importlib import import_module
from types import ModuleType

from buddysim import capture
from buddysim.base.registry import LAST
from buddysim.cli import SUBCOMMAND, CommandParser, add_command

NAME = "capture"
TASK = "prepare"
ORDER = 200
HELP = "capture a run of a program and write a trace file"


def kinds() -> list[ModuleType]:
    """The packages that capture a kind of program, in the order of their ``ORDER``, then by name."""
    names = (entry.name for entry in pkgutil.iter_modules(capture.__path__) if entry.ispkg)
    packages = (import_module(f"buddysim.capture.{name}") for name in names)
    paths = (package for package in packages if all(hasattr(package, name) for name in SUBCOMMAND))
    return sorted(paths, key=lambda kind: (getattr(kind, "ORDER", LAST), kind.NAME))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    subparsers = parser.add_subparsers(
        title="what", dest="kind", metavar="WHAT", required=True, parser_class=CommandParser
    )
    for kind in kinds():
        subparser = add_command(subparsers, kind)
        subparser.add_all_arguments()
        subparser.set_defaults(capture=kind.run)


def run(args: argparse.Namespace) -> int:
    return int(args.capture(args))
