"""Typed schemas of users' files: a wrong type is one line that names the field, what was expected and what is there."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened

_EXPECTED = {
    "string_type": "a text",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a table of names and values",
    "list_type": "a list",
}

S = TypeVar("S", bound="Schema")


class Schema(BaseModel):
    """Fields of a file with exact types: a text is no number, and an unknown field is an error."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def checked(schema: type[S], content: object, where: str) -> S:
    """Return the fields of a file's content.

    Parameters
    ----------
    where : what errors begin with: the file

    Raises
    ------
    BuddysimError
        the first field that is unknown, missing or of another type
    """
    try:
        return schema.model_validate(content)
    except ValidationError as error:
        raise BuddysimError(f"{where}: {_problem(schema, error.errors(include_url=False)[0])}") from None


def _problem(schema: type[Schema], problem: ErrorDetails) -> str:
    names = [field.alias or name for name, field in schema.model_fields.items()]
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{shortened(key)}: expected one of {', '.join(names)}{hint(key, names)}"
    if problem["type"] == "missing":
        return f"{shortened(key)} is missing"
    value: Any = problem["input"]
    expected = _EXPECTED.get(problem["type"], problem["msg"])
    return f"{key or 'content'}: expected {expected}, got {shortened(value)}"
