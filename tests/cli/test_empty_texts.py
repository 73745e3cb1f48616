"""An empty text, as an unset variable of a shell gives it, is refused by every option of every command."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from buddysim.cli import Finished, make_parser

PARSER = make_parser(complete=True)

Options = Iterator[tuple[tuple[str, ...], argparse.ArgumentParser, argparse.Action]]


def every_action(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Options:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from every_action(command, (*path, name))
        else:
            yield path, parser, action


def command_lines() -> Iterator[list[str]]:
    """One for each option and each positional that takes a value: it is empty, those before it are not."""
    for path, parser, action in every_action(PARSER):
        if action.nargs == 0 or action.nargs == argparse.REMAINDER:
            continue
        if action.option_strings:
            yield [*path, action.option_strings[-1], ""]
            continue
        before = [one for one in parser._get_positional_actions() if one is not action]
        before = before[: parser._get_positional_actions().index(action)]
        yield [*path, *(str(next(iter(one.choices))) if one.choices else "x" for one in before), ""]


def test_no_option_takes_its_default_for_an_empty_text(capsys: pytest.CaptureFixture[str]) -> None:
    lines = list(command_lines())
    assert len(lines) > 300
    for line in lines:
        with pytest.raises(Finished):
            PARSER.parse_args(line)
        assert "an empty text" in capsys.readouterr().err, line


def test_words_of_a_captured_program_are_its_own() -> None:
    assert PARSER.parse_args(["capture", "torch", "x.py", "a", ""]).arguments == ["a", ""]
