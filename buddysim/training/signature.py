"""Real parameters for functions that take the options of a training as keywords: `help` and editors show them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from buddysim.training import schemes
from buddysim.training.iteration.plan import TrainingOptions


def show_options(function: Callable[..., Any]) -> None:
    """Replace ``**keywords`` in a function's signature and docstring by the options that it accepts.

    Parameters
    ----------
    function : a function whose ``**keywords`` are fields of `TrainingOptions` and options that schemes declare
    """
    signature = inspect.signature(function)
    parameters = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    names = {one.name for one in parameters}
    added = [option for option in _options() if option[0].name not in names]
    function.__signature__ = signature.replace(parameters=[*parameters, *(one for one, _ in added)])  # type: ignore[attr-defined]
    lines = "".join(f"\n{one.name} : {text}" for one, text in added)
    function.__doc__ = f"{inspect.getdoc(function)}{lines}\n"


def _options() -> Iterator[tuple[inspect.Parameter, str]]:
    """Each option as a parameter, with its description."""
    described = dict(re.findall(r"^ {4}(\w+) : (.*)$", TrainingOptions.__doc__ or "", flags=re.M))
    for field in fields(TrainingOptions):
        if field.name != "extra":
            yield _parameter(field.name, field.default, str(field.type)), described[field.name]
    for name, option in schemes.options().items():
        yield _parameter(name, option.default, option.type.__name__), option.help


def _parameter(name: str, default: object, kind: str) -> inspect.Parameter:
    annotation = kind if default is not None or "None" in kind else f"{kind} | None"
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
