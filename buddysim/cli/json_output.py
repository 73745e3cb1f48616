"""The option `--json FILE` of the commands that show something: a file, or `-` for standard output."""

from __future__ import annotations

import argparse
import json
from typing import Any

JSON_HELP = "write {what} as JSON to FILE; -: to standard output, without a screen"


def add_json_argument(parser: argparse._ActionsContainer, what: str = "the full result") -> None:
    """Add `--json FILE` to a parser, or to a group of exclusive options.

    Parameters
    ----------
    what : the content of the file, for the help text
    """
    parser.add_argument("--json", metavar="FILE", help=JSON_HELP.format(what=what))


def is_on_stdout(args: argparse.Namespace) -> bool:
    """Whether JSON takes standard output, so that no screen is shown."""
    return bool(args.json == "-")


def json_file(args: argparse.Namespace) -> str | None:
    """Return the file that `--json` names; None: there is no such file."""
    return None if args.json is None or is_on_stdout(args) else str(args.json)


def write_plain_json(args: argparse.Namespace, content: Any) -> None:
    """Write `content` where `--json` says, in the order of its keys; nothing without that option."""
    from buddysim.base.jsonfile import print_utf8
    from buddysim.base.output import write_text

    if args.json is None:
        return
    # A terminal may obey control characters of names: escaped on standard output.
    text = json.dumps(content, indent=2, ensure_ascii=is_on_stdout(args), default=str) + "\n"
    if is_on_stdout(args):
        print_utf8(text)
    else:
        write_text(args.json, text)
