"""Writes docs/reference/cli.md from the parsers, independent of the terminal and the version of Python."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator

from buddysim.base.markdown import wrap_markdown
from buddysim.cli import CommandParser, commands_by_task, make_parser
from tools.reference import cell, head, linked, table

_PROGRAM = "python -m buddysim"
_LEFT_OUT = ("--help", "--plugin")
_TEXT = """
All commands and options of `python -m buddysim`, which is also installed as `buddysim`. Every command takes `--help`
and `--plugin FILE`, which loads a [plug-in](../how-to/add-a-plugin.md) and may be repeated. `buddysim --version` prints
the version; `buddysim --print-completion SHELL` prints a completion script for `bash`, `zsh` or `tcsh`.

Exit codes: 0: success; 1: a comparison or a point of a sweep failed; 2: an error of the user, printed as one line;
130: interrupted by Ctrl-C. A value in brackets is optional; `..` repeats the value before it.
"""


def cli_page() -> str:
    """Return the page: the commands by task, then a section for each command."""
    parser = make_parser()
    commands = _subcommands(parser)
    tasks = [
        (f"**{cell(task)}**" if name == names[0] else "", f"[`{name}`](#{name})", cell(_summary(commands[name])))
        for task, names in commands_by_task().items()
        for name in names
    ]
    parts = [head("Commands"), _TEXT, table(("task", "command", "result"), tasks)]
    for name in sorted(commands):
        parts += _section(commands[name], name, 2)
    return wrap_markdown("".join(parts))


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, CommandParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _section(parser: CommandParser, command: str, level: int, summary: str = "") -> Iterator[str]:
    parser.add_all_arguments()
    subcommands = _subcommands(parser)
    yield f"\n{'#' * level} {command}\n\n{_description(parser.description or summary)}\n"
    if not subcommands:
        yield f"\n    {_PROGRAM} {' '.join([command, *_usage(parser)])}\n"
    own = [action for group in (parser._positionals, parser._optionals) for action in group._group_actions]
    yield from _actions(own, "")
    for group in parser._action_groups:
        if group not in (parser._positionals, parser._optionals):
            yield from _actions(group._group_actions, " ".join((group.title or "").split()))
    for name, subparser in subcommands.items():
        yield from _section(subparser, f"{command} {name}", level + 1, _help_of(parser, name))


def _help_of(parser: CommandParser, name: str) -> str:
    """Return the line about a subcommand in the help of its command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return next((str(one.help or "") for one in action._choices_actions if one.dest == name), "")
    return ""


def _summary(parser: CommandParser) -> str:
    return (parser.description or "").partition("\n")[0]


def _description(text: str) -> str:
    """Yield the paragraphs of a description; indented lines are code."""
    summary, *paragraphs = text.split("\n\n")
    parts = [f"{summary[0].upper()}{_quoted(summary[1:])}."]
    for paragraph in paragraphs:
        lines = paragraph.split("\n")
        if all(line.startswith("  ") for line in lines):
            parts.append("\n".join(f"    {line.strip()}" for line in lines))
        else:
            parts.append(_quoted(" ".join(line.strip() for line in lines)))
    return "\n\n".join(parts)


def _usage(parser: CommandParser) -> Iterator[str]:
    """Yield the usage of a command after its name: required arguments, then a mark for options."""
    optional = False
    for action in _shown(parser._actions):
        if action.option_strings and not action.required:
            optional = True
        elif action.option_strings:
            yield f"{action.option_strings[0]} {action.metavar}"
    for action in _shown(parser._actions):
        if not action.option_strings and not action.required and action.nargs != argparse.REMAINDER:
            yield f"[{_values(action)}]"
        elif not action.option_strings:
            yield _values(action)
    if optional:
        yield "[OPTION ..]"


def _shown(actions: Iterable[argparse.Action]) -> Iterator[argparse.Action]:
    for action in actions:
        left_out = any(option in _LEFT_OUT for option in action.option_strings)
        subcommands = isinstance(action, argparse._SubParsersAction)
        if not left_out and not subcommands and action.help != argparse.SUPPRESS:
            yield action


def _actions(actions: Iterable[argparse.Action], title: str) -> Iterator[str]:
    """Yield tables of the arguments and of the options in a group."""
    shown = list(_shown(actions))
    arguments = [action for action in shown if not action.option_strings]
    options = [action for action in shown if action.option_strings]
    if not shown:
        return
    if title:
        heading = title if any(letter.isupper() for letter in title.split()[0]) else title[0].upper() + title[1:]
        yield f"\n**{_quoted(heading)}**\n"
    if arguments:
        yield _table("argument", [(f"`{cell(_values(action))}`", action) for action in arguments])
    if options:
        yield _table("option", [(_option(action), action) for action in options])


def _table(heading: str, named: list[tuple[str, argparse.Action]]) -> str:
    """Return a table of arguments without empty columns."""
    headings = (heading, "values", "default", "meaning")
    rows = [(name, _choices(action), *_default_and_meaning(action)) for name, action in named]
    filled = [column for column in range(len(headings)) if any(row[column] for row in rows)]
    return table(tuple(headings[n] for n in filled), [tuple(row[n] for n in filled) for row in rows])


def _option(action: argparse.Action) -> str:
    return ", ".join(f"`{cell(f'{option} {_values(action)}'.strip())}`" for option in action.option_strings)


def _values(action: argparse.Action) -> str:
    """Return the notation of a value; empty for a switch."""
    if action.nargs == 0:
        return ""
    name = action.metavar if isinstance(action.metavar, str) else (action.dest or "").upper()
    if action.choices and not action.metavar:
        name = "NAME"
    return f"{name} .." if action.nargs in ("+", "*", argparse.REMAINDER) and ".." not in name else name


def _choices(action: argparse.Action) -> str:
    choices = [str(choice) for choice in action.choices or ()]
    if len(choices) > 2 and choices[0].isdecimal():
        lowest, highest = int(choices[0]), int(choices[-1])
        if choices == [str(number) for number in range(lowest, highest + 1)]:
            return f"{lowest} to {highest}"
    return ", ".join(f"`{cell(choice)}`" for choice in choices)


def _default_and_meaning(action: argparse.Action) -> tuple[str, str]:
    """Return the default, which the help text may state, and the meaning without it."""
    text = " ".join((action.help or "").split())
    text = text % {**vars(action), "prog": "buddysim"} if "%" in text else text
    clause = re.search(r" ?\(default: ((?:[^()]|\([^()]*\))*)\)", text)
    if clause:
        text = text[: clause.start()] + text[clause.end() :]
        default = clause[1] if " " in clause[1] else f"`{clause[1]}`"
        return cell(_quoted(default)), cell(_quoted(text.strip()))
    default = action.default
    if action.nargs == 0 or default in (None, argparse.SUPPRESS, "", []):
        return "", cell(_quoted(text))
    return f"`{cell(str(default))}`", cell(_quoted(text))


def _quoted(text: str) -> str:
    """Return a text with options, quoted names and commands as code, and documents as links."""
    text = re.sub(r"pip install '[^']+'", r"`\g<0>`", text)
    outside = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _quoted_prose(part) for part in outside)


def _quoted_prose(text: str) -> str:
    text = re.sub(r"(?<!\w)'([^']+)'(?!\w)", r"`\1`", linked(text))
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _quoted_options(part) for part in parts)


def _quoted_options(text: str) -> str:
    return re.sub(r"(?<![\w-])(--[a-z][a-z-]*|-o)(?!\w)", r"`\1`", text.replace("*", r"\*"))
