"""The form as a command line: what the page sends is what `train` and `fit` get."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from buddysim.base.boundary import ending
from buddysim.base.errors import BuddysimError

#: Options of the form, by the field's name; the model is no option.
FLAGS = {
    "machine": "--machine",
    "memory": "--memory-budget",
    "recipe": "--recipe",
    "optimizer": "--optimizer",
    "batch": "--batch",
    "sequence": "--sequence",
    "lora": "--lora",
    "fsdp": "--fsdp",
    "link": "--link",
}
#: Options without a value: fields that are checked or not.
SWITCHES = {"qlora": "--qlora"}


def train_arguments(question: Mapping[str, str]) -> list[str]:
    """Return the arguments of the command ``train`` for every scheme.

    Parameters
    ----------
    question : texts by field, ``"model"`` and those of `FLAGS` and `SWITCHES`; an empty one is not given
    """
    return ["train", *_arguments(question), "--scheme", "all"]


def fit_arguments(question: Mapping[str, str]) -> list[str]:
    """Return the arguments of the command ``fit``."""
    return ["fit", *_arguments(question)]


def _arguments(question: Mapping[str, str]) -> list[str]:
    options = [part for field, flag in FLAGS.items() if question.get(field) for part in (flag, question[field])]
    switches = [flag for field, flag in SWITCHES.items() if question.get(field)]
    return [question["model"], *options, *switches]


def command_line(arguments: list[str]) -> str:
    """Return the command to copy."""
    return f"python -m buddysim {shlex.join(arguments)}"


def error_part(error: BuddysimError, question: Mapping[str, str]) -> dict[str, str]:
    """Return what the page shows of an error: the line of the command, and the field that it is about."""
    line = ending(error).line.removeprefix("error: ")
    return {"part": "error", "line": line, "field": field_of(line, question)}


def field_of(line: str, question: Mapping[str, str]) -> str:
    """Return the field that an error is about: the one whose option it names, else the model."""
    for field, flag in (*FLAGS.items(), *SWITCHES.items()):
        if line.startswith((flag, f"{field} ", f"{field}:")) or f"argument {flag}:" in line:
            return field
    return "machine" if line.startswith(f"{question.get('machine')}: ") else "model"
