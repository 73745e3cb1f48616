"""What members of kinds return, checked where it is taken: plug-ins are files of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from buddysim.base.hints import shortened
from buddysim.base.plugin_modules import source_of_module

T = TypeVar("T")


class WrongReturn(TypeError):
    """A member of a kind returned what nothing can be made of.

    Parameters
    ----------
    message : what returned what, and what was expected
    plugin : the plug-in's file; None: it is of the package
    """

    def __init__(self, message: str, plugin: object) -> None:
        super().__init__(message)
        self.plugin = plugin


def returned(value: object, expected: type[T], what: str, function: Callable[..., Any]) -> T:
    """Return what a member's function returned, if it is of the class that its kind expects.

    Parameters
    ----------
    what : the member and its function, for the message: ``"figure mine: draw"``

    Raises
    ------
    WrongReturn
        it is of another class
    """
    if isinstance(value, expected):
        return value
    article = "an" if expected.__name__[0] in "AEIOaeio" else "a"
    message = f"{what} returned {shortened(value)}, expected {article} {expected.__name__}"
    raise WrongReturn(message, source_of_module(function.__module__))
