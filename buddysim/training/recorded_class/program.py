"""The forward pass of a module as a list of operators and calls of modules within, with the end of each value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Slot(NamedTuple):
    """A value of a run of a program, by its number."""

    number: int


class Weight(NamedTuple):
    """A parameter or buffer, by its path in the module that runs."""

    path: str


Reference = Slot | Weight


@dataclass(slots=True)
class ProgramStep:
    """What a module does next.

    Attributes
    ----------
    args, kwargs : with references instead of tensors
    results : a slot for each tensor that is returned; None for one that an argument is
    ends : slots whose values nothing refers to behind it
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: list[int | None] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


@dataclass(slots=True)
class OperatorStep(ProgramStep):
    """An operator of PyTorch.

    Attributes
    ----------
    recorded : autograd is on
    cast : autocast is, where the recipe has one
    """

    operator: Any = None
    recorded: bool = True
    cast: bool = False


@dataclass(slots=True)
class CallStep(ProgramStep):
    """A call of a module within.

    Attributes
    ----------
    program : None where the module has a forward pass of its own (`Linear`)
    captured : what the module reads except its arguments and its own weights
    """

    path: str = ""
    program: ForwardProgram | None = None
    captured: list[Reference] = field(default_factory=list)


@dataclass(slots=True)
class ForwardProgram:
    """What a call of a module does.

    Attributes
    ----------
    inputs : a slot for each tensor among the arguments, in order; then those that are captured
    slots : their number
    results : what is returned
    """

    inputs: list[int] = field(default_factory=list)
    slots: int = 0
    steps: list[OperatorStep | CallStep] = field(default_factory=list)
    results: list[Reference] = field(default_factory=list)


_PLAIN = frozenset((int, float, bool, str, type(None)))


def mapped(value: Any, is_leaf: Callable[[Any], bool], function: Callable[[Any], Any]) -> Any:
    """Return tuples, lists and dictionaries with other leaves, as plain ones."""
    if type(value) in _PLAIN:
        return value
    if is_leaf(value):
        return function(value)
    if isinstance(value, tuple):
        return tuple([mapped(one, is_leaf, function) for one in value])
    if isinstance(value, list):
        return [mapped(one, is_leaf, function) for one in value]
    if isinstance(value, dict):
        return {name: mapped(one, is_leaf, function) for name, one in value.items()}
    return value


def leaves_of(value: Any) -> Iterator[Any]:
    """What tuples, lists and dictionaries hold, in the order of `mapped`."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        for one in value:
            yield from leaves_of(one)
    else:
        yield value
