"""The command line: ``python -m buddysim COMMAND``, one module of this folder per command.

A command is a module with ``NAME``, ``HELP``, ``add_arguments(parser)`` and ``run(args) -> int``. It raises
`BuddysimError` for what a user did wrong; everything else about errors and exit codes is decided here.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import NoReturn

import buddysim
from buddysim.base.errors import BuddysimError

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_BROKEN_PIPE = 128 + signal.SIGPIPE


class Parser(argparse.ArgumentParser):
    """Says what is wrong with the arguments in the one line that every other error has."""

    def error(self, message: str) -> NoReturn:
        command = " ".join(self.prog.split()[1:])
        place = f"{command}: " if command else ""
        _say(f"error: {place}{message} (try: {self.prog} --help)")
        raise SystemExit(EXIT_USER_ERROR)


def commands() -> list[ModuleType]:
    """The command modules, in alphabetical order of their names."""
    names = (module.name for module in pkgutil.iter_modules(__path__))
    modules = (import_module(f"{__name__}.{name}") for name in names if not name.startswith("_"))
    return sorted((module for module in modules if hasattr(module, "NAME")), key=lambda module: str(module.NAME))


def make_parser() -> argparse.ArgumentParser:
    """The parser with every command; each says what it does and what it takes."""
    parser = Parser(prog="buddysim", description=(buddysim.__doc__ or "").partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"buddysim {buddysim.__version__}")
    _add_completion(parser)
    subparsers = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for command in commands():
        summary = command.HELP.partition("\n")[0]
        subparser = subparsers.add_parser(
            command.NAME,
            help=summary,
            description=command.HELP,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        args = make_parser().parse_args(argv)
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except BuddysimError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        _drop_stdout()
        return EXIT_BROKEN_PIPE
    except OSError as error:
        name = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
        return _refuse(f"{name}{error.strerror or error}")
    except MemoryError as error:
        return _refuse(f"out of memory: {error}" if str(error) else "out of memory")
    except KeyboardInterrupt:
        _say("interrupted; nothing half-written was left")
        return EXIT_INTERRUPTED


def _refuse(problem: str) -> int:
    _say(f"error: {problem}")
    return EXIT_USER_ERROR


def _say(text: str) -> None:
    print(f"buddysim: {' '.join(text.split())}", file=sys.stderr)


def _drop_stdout() -> None:
    """Whoever read the output is gone: let the interpreter's last flush go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _add_completion(parser: argparse.ArgumentParser) -> None:
    import shtab

    shtab.add_argument_to(parser, ["--print-completion"], help="print the completion script of a shell and leave")
