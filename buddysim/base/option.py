"""Options: what a keyword of Python, an argument of the command line and an axis of a sweep say of themselves.

An `Option` is declared once. The fields of a request are made by `option_field`; schemes declare their own in a
``OPTIONS``. Signatures, docstrings, arguments and axes are made from the declarations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, replace
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened

_EXPECTED = {bool: "True or False", int: "an integer", float: "a number", str: "a text"}
_METADATA = "option"
#: `Option.metavar` of an option whose value is the path of a file.
FILE = "FILE"


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    type : bool, int, float (integers too) or str: how the command line writes a value
    help : one line; of a bool, the effect of True, beginning with a verb
    metavar : the value's name in help texts; a bool has no value there
    default : None where there is none
    group : heading under which help texts list it
    choices : the names among which the value is; a function gives those that plug-ins may add to
    completes : kind of name that a shell completes (`buddysim.cli.completion`); "" for none
    python : what a caller in Python may give in addition, for docstrings
    annotation : its type in Python, where that is more than `type`
    required : whether a value must be given
    """

    type: type[Any]
    help: str
    metavar: str = "VALUE"
    default: Any = None
    group: str = "options of schemes"
    choices: tuple[str, ...] | Callable[[], Iterable[str]] = ()
    completes: str = ""
    python: str = ""
    annotation: str = ""
    required: bool = False

    def __post_init__(self) -> None:
        if self.type not in _EXPECTED:
            raise ValueError(f"type {self.type!r}: expected one of bool, int, float, str")

    def flag(self, name: str) -> str:
        """How the command line spells it: ``--my-option``, or ``--no-my-option`` for a bool that is True by default."""
        negated = "no-" if self.type is bool and self.default else ""
        return f"--{negated}{name.replace('_', '-')}"

    @property
    def text(self) -> str:
        """Its help with the names to choose from."""
        return f"{self.help}: {', '.join(self.names)}" if self.choices else self.help

    @property
    def names(self) -> tuple[str, ...]:
        """The names to choose from; () where any value will do."""
        return tuple(self.choices()) if callable(self.choices) else self.choices

    def flag_help(self) -> str:
        """The help text of its flag, with the default."""
        if self.type is bool:
            return f"do not {self.help}" if self.default else self.help
        return self.text if self.default is None else f"{self.text} (default: {self.default})"

    def docstring(self) -> str:
        """Its description for a caller in Python; without names that a function gives: plug-ins may come later."""
        text = self.help if callable(self.choices) else self.text
        return f"{text}; in Python also {self.python}" if self.python else text

    def check(self, name: str, value: object) -> None:
        """Raises a BuddysimError where a value isn't of the option's type."""
        accepted = (int, float) if self.type is float else self.type
        if not isinstance(value, accepted) or (isinstance(value, bool) and self.type is not bool):
            raise BuddysimError(f"option {name}: {shortened(value)}: expected {_EXPECTED[self.type]}")

    def check_choice(self, name: str, value: object) -> None:
        """Raises a BuddysimError where a value isn't one of the names to choose from."""
        if self.choices and value not in self.names:
            nearest = hint(str(value), self.names)
            raise BuddysimError(f"{name} {shortened(value)}: expected one of {', '.join(self.names)}{nearest}")


def option_field(kind: type[Any], text: str, default: Any = MISSING, **of_option: Any) -> Any:
    """Return a dataclass field that is an option.

    Parameters
    ----------
    kind, text : `Option.type` and `Option.help`
    default : of the field; without it a value is required
    of_option : other attributes of the `Option`
    """
    required = default is MISSING
    declared = Option(kind, text, default=None if required else default, required=required, **of_option)
    return dataclasses.field(default=default, metadata={_METADATA: declared})


def same_option(of: type[Any], name: str) -> Any:
    """Return a dataclass field that is the same option as a field of another class."""
    declared = field_options(of)[name]
    return dataclasses.field(default=declared.default, metadata={_METADATA: replace(declared, annotation="")})


def field_options(of: type[Any]) -> dict[str, Option]:
    """Return the options among the fields of a dataclass, by name, in order."""
    return {
        field.name: replace(field.metadata[_METADATA], annotation=str(field.type))
        for field in dataclasses.fields(of)
        if _METADATA in field.metadata
    }


def values(declared: Mapping[str, Option], selected: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every declared option: the selected one, else the default; None selects the default.

    Raises
    ------
    BuddysimError
        where a given value isn't of its option's type
    """
    by_name = {}
    for name, option in declared.items():
        by_name[name] = option.default
        if selected.get(name) is not None:
            option.check(name, selected[name])
            by_name[name] = selected[name]
    return by_name
