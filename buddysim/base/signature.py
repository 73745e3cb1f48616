"""Signatures and docstrings of what takes options as keywords: ``help``, editors and the reference page show them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from buddysim.base.option import Option, field_options

_SECTION = re.compile(r"^(Parameters|Attributes|Returns|Raises|Yields|Notes)\n-+\n", re.M)
C = TypeVar("C", bound=type[Any])


def show_options(function: Callable[..., Any], options: Mapping[str, Option]) -> None:
    """Replace ``**keywords`` in a function's signature by options, and describe these in its docstring.

    Parameters
    ----------
    function : its docstring describes the parameters that are no options
    options : by name; of those that the signature has, the docstring gets the description
    """
    signature = inspect.signature(function)
    parameters = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    own = {one.name for one in parameters}
    added = [_parameter(name, option) for name, option in options.items() if name not in own]
    function.__signature__ = signature.replace(parameters=[*parameters, *added])  # type: ignore[attr-defined]
    described = [one.name for one in parameters if one.name in options] + [one.name for one in added]
    function.__doc__ = _with_section(inspect.getdoc(function) or "", "Parameters", options, described)


def described(of: C) -> C:
    """Describe the options among a dataclass's fields in its docstring; a decorator."""
    options = field_options(of)
    of.__doc__ = _with_section(inspect.getdoc(of) or "", "Attributes", options, list(options))
    return of


def _with_section(text: str, title: str, options: Mapping[str, Option], names: list[str]) -> str:
    """The docstring with a description of these options before all others in its section of that title."""
    lines = "".join(f"{name} : {options[name].docstring()}\n" for name in names)
    for section in _SECTION.finditer(text):
        if section[1] == title:
            return f"{text[: section.end()]}{lines}{text[section.end() :]}\n"
    first = _SECTION.search(text)
    start = first.start() if first else len(text)
    before, after = text[:start].rstrip(), text[start:]
    end = f"\n{after}\n" if after else ""
    return f"{before}\n\n{title}\n{'-' * len(title)}\n{lines}{end}"


def _parameter(name: str, option: Option) -> inspect.Parameter:
    kind = option.annotation or option.type.__name__
    annotation = kind if option.default is not None or option.required or "None" in kind else f"{kind} | None"
    default = inspect.Parameter.empty if option.required else option.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
