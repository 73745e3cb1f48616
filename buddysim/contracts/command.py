"""Contracts of commands: what the parser shows. What a command does is its own: a trial might change files."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator

from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.texts import not_a_line, not_a_word, unexplained


def _parser(subject: Subject) -> argparse.ArgumentParser:
    """A parser with the options that every command has, and the command's."""
    parser = argparse.ArgumentParser(prog=subject.name, allow_abbrev=False)
    parser.add_argument("--plugin", help="a plug-in")
    subject.member.add_arguments(parser)
    return parser


def _unnamed(subject: Subject) -> Iterator[str]:
    yield from not_a_word("NAME", subject.member.NAME)
    yield from not_a_line("HELP's first line", str(subject.member.HELP).partition("\n")[0])


def _unparsed(subject: Subject) -> Iterator[str]:
    parser = _parser(subject)
    yield from unexplained(parser)
    parser.format_help()  # a single % in a help text is an error
    if _parser(subject).format_help() != parser.format_help():
        yield "two parsers get different arguments"


def _not_run(subject: Subject) -> Iterator[str]:
    parameters = inspect.signature(subject.member.run).parameters.values()
    needed = [one for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    if len(needed) != 1 or needed[0].kind is inspect.Parameter.KEYWORD_ONLY:
        yield f"run takes {', '.join(one.name for one in needed) or 'nothing'}: expected the parsed arguments alone"


CONTRACTS = {
    "command": (
        Contract("its name is a word, its help begins with a line", _unnamed),
        Contract("its help screen is the same each time, and explains each argument", _unparsed),
        Contract("run takes the parsed arguments", _not_run),
    )
}
