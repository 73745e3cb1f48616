"""A command line as its command reads it."""

from __future__ import annotations

import argparse
import contextlib
import io
from functools import cache
from types import ModuleType

from buddysim.base.errors import BuddysimError
from buddysim.cli import CommandParser, Finished

_ERROR = "buddysim: error: "


def parsed(command: ModuleType, arguments: list[str]) -> argparse.Namespace:
    """Return the arguments as a command reads them.

    Parameters
    ----------
    command : a module of `buddysim.cli`
    arguments : the command's name, and its arguments

    Raises
    ------
    BuddysimError
        with the line that the command prints
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return _parser(command).parse_args(arguments[1:])
    except Finished:
        raise BuddysimError(said.getvalue().strip().removeprefix(_ERROR)) from None


@cache
def _parser(command: ModuleType) -> CommandParser:
    parser = CommandParser(prog=f"buddysim {command.NAME}", allow_abbrev=False)
    parser.command = command
    return parser
