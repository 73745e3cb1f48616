"""Options that training schemes declare.

A scheme's file has ``OPTIONS``, an `Option` by name. The command line makes its arguments, their help and their checks
from these declarations; `buddysim.training.simulate` takes the same names as keywords. The user's choices reach the
scheme in `Options.extra`; `values` checks them and fills in the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened

_EXPECTED = {bool: "True or False", int: "an integer", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    type : bool, int, float (integers too) or str
    help : one line; of a bool, the effect of True, beginning with a verb
    metavar : the value's name in help texts; a bool has no value there
    default : None where there is none
    group : heading under which help texts list it
    """

    type: type[Any]
    help: str
    metavar: str = "VALUE"
    default: Any = None
    group: str = "options of schemes"

    def __post_init__(self) -> None:
        if self.type not in _EXPECTED:
            raise ValueError(f"type {self.type!r}: expected one of bool, int, float, str")

    def flag(self, name: str) -> str:
        """How the command line spells it: ``--my-option``, or ``--no-my-option`` for a bool that is True by default."""
        negated = "no-" if self.type is bool and self.default else ""
        return f"--{negated}{name.replace('_', '-')}"

    def flag_help(self) -> str:
        """The help text of its flag, with the default."""
        if self.type is bool:
            return f"do not {self.help}" if self.default else self.help
        return self.help if self.default is None else f"{self.help} (default: {self.default})"

    def check(self, name: str, value: object) -> None:
        """Raises a BuddysimError where a value isn't of the option's type."""
        accepted = (int, float) if self.type is float else self.type
        if not isinstance(value, accepted) or (isinstance(value, bool) and self.type is not bool):
            raise BuddysimError(f"option {name}: {shortened(value)}: expected {_EXPECTED[self.type]}")


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
