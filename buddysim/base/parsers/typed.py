"""Contents checked by pydantic, whose validators may be this package's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from buddysim.base.parsers.refusal import refusal

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter
    from pydantic_core import ErrorDetails

T = TypeVar("T")
M = TypeVar("M", bound="BaseModel")


class InvalidContentError(Exception):
    """A content that isn't what its type says.

    Parameters
    ----------
    problems : all of them, as pydantic describes them
    """

    def __init__(self, problems: list[ErrorDetails]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = problems


def model_of(cls: type[M], content: Any, begin: str) -> M:
    """Return the model of a content; the errors are those of `validated`."""
    return validated(cls.model_validate, content, begin)


def value_of(adapter: TypeAdapter[T], content: Any, begin: str) -> T:
    """Return the value of any type of a content; the errors are those of `validated`."""
    return validated(adapter.validate_python, content, begin)


def validated(validate: Callable[[Any], T], content: Any, begin: str) -> T:
    """Return what a function of pydantic makes of a content.

    Parameters
    ----------
    validate : ``model_validate`` of a model, ``validate_python`` of an adapter
    begin : of an error of pydantic itself

    Raises
    ------
    InvalidContentError
        with the problems of a content of another type
    BuddysimError
        where pydantic fails
    """
    from pydantic import ValidationError

    try:
        return validate(content)
    except ValidationError as error:
        problems = error.errors(include_url=False)
    except Exception as error:
        raise refusal(error, begin) from None
    raise InvalidContentError(problems)
