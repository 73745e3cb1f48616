"""Promises about texts that lists and help screens show."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST_LINE = 200


def not_a_line(what: str, text: object) -> Iterator[str]:
    """A breach unless a text is one line of a list."""
    if not isinstance(text, str) or not text.strip() or len(text.splitlines()) != 1 or len(text) > _LONGEST_LINE:
        yield f"{what}: {text!r}: expected one line of at most {_LONGEST_LINE} characters"


def not_a_word(what: str, text: object) -> Iterator[str]:
    """A breach unless a text is a name that can be typed: small letters, digits, single ``-``."""
    if not isinstance(text, str) or not _NAME.fullmatch(text):
        yield f"{what}: {text!r}: expected small letters, digits and single -"


def unexplained(parser: argparse.ArgumentParser) -> Iterator[str]:
    """A breach for each argument of a parser, and of its actions, without a help text."""
    for action in parser._actions:
        name = action.option_strings[-1] if action.option_strings else action.dest
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from unexplained(subparser)
        elif not action.help:
            yield f"argument {name}: expected a help text"
