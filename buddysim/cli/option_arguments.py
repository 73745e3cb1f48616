"""Arguments of the command line, made from the declarations of options."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from buddysim.base.option import FILE, Option
from buddysim.cli.completion import completes


def add_options(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, options: Mapping[str, Option], dest: str = ""
) -> None:
    """Add an argument for each option: a positional one where a value is required.

    Parameters
    ----------
    dest : prefix of the names of the parsed values; with one, what is not given is None instead of the default
    """
    for name, option in options.items():
        add_option(parser, name, option, dest)


def add_option(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, name: str, option: Option, dest: str = ""
) -> None:
    """Add the argument of one option, as `add_options` does."""
    text = option.flag_help().replace("%", "%%")  # argparse formats help texts
    default = None if dest else option.default
    if option.required:
        argument = parser.add_argument(name, metavar=option.metavar, type=option.type, help=text)
    elif option.type is bool:
        argument = parser.add_argument(
            option.flag(name),
            dest=dest + name,
            action="store_const",
            const=not option.default,
            default=default,
            help=text,
        )
    else:
        argument = parser.add_argument(
            option.flag(name), dest=dest + name, metavar=option.metavar, type=option.type, default=default, help=text
        )
        if isinstance(option.choices, tuple) and option.choices:
            argument.choices = option.choices
    kind = option.completes or ("file" if option.metavar == FILE else "")
    if kind:
        completes(argument, kind)
