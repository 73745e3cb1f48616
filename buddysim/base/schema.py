"""Typed schemas of users' files: a wrong type is one line that names the field, what was expected and what is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, WithJsonSchema
from pydantic_core import ErrorDetails

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.parsers.typed import InvalidContentError, model_of, validated, value_of
from buddysim.base.textfile import check_keys, decoded, parse_json

#: What each kind of pydantic's errors expects; names in braces are of its context.
_EXPECTED = {
    "string_type": "a text",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "int_parsing_size": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bytes_type": "bytes",
    "none_required": "nothing",
    "dict_type": "a table of names and values",
    "model_type": "a table of names and values",
    "model_attributes_type": "a table of names and values",
    "dataclass_type": "a table of names and values",
    "list_type": "a list",
    "tuple_type": "a list",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} values",
    "too_long": "at most {max_length} values",
    "value_error": "{error}",
    "union_tag_invalid": "one of {expected_tags}",
}

S = TypeVar("S", bound="Schema")
T = TypeVar("T")


def _filled(text: str) -> str:
    if not text:
        raise ValueError("a text that isn't empty")
    return text


Filled = Annotated[str, AfterValidator(_filled)]


def one_of(names: Iterable[str]) -> Any:
    """Return the type of a text that is one of some names."""
    known = tuple(names)

    def check(text: str) -> str:
        if text not in known:
            raise ValueError(f"one of {', '.join(known)}{hint(text, known)}")
        return text

    return Annotated[str, AfterValidator(check), WithJsonSchema({"type": "string", "enum": list(known)})]


class Schema(BaseModel):
    """Fields of a file with exact types: a text is no number, and an unknown field is an error.

    A validator of a field raises a ValueError that says what it expects.
    """

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)


def checked(schema: type[S], content: object, where: str = "") -> S:
    """Return the fields of a file's content.

    Parameters
    ----------
    where : what errors begin with: the file; nothing where the caller names it

    Raises
    ------
    BuddysimError
        the first field that is unknown, missing or of another type
    """
    try:
        return model_of(schema, content, where)
    except InvalidContentError as error:
        problem = problem_of(error.problems, content, schema.model_json_schema)
        raise BuddysimError(f"{where}: {problem}" if where else problem) from None


def checked_type(adapter: TypeAdapter[T], content: object, where: str) -> T:
    """Return a content of any type that pydantic knows: `checked`, for entries of which a file has millions."""
    try:
        return value_of(adapter, content, where)
    except InvalidContentError as error:
        raise BuddysimError(f"{where}: {problem_of(error.problems, content, adapter.json_schema)}") from None


def checked_cells(schema: type[S], cells: Mapping[str, str], where: str) -> S:
    """Return the fields of a row of CSV: `checked`, with numbers written as texts."""
    try:
        return validated(schema.model_validate_strings, dict(cells), where)
    except InvalidContentError as error:
        raise BuddysimError(f"{where}: {problem_of(error.problems, cells, schema.model_json_schema)}") from None


def checked_json(adapter: TypeAdapter[T], text: bytes, where: str) -> T:
    """Return the content of a JSON text: `checked`, without a tree of Python's objects."""
    try:
        content = validated(adapter.validate_json, text, where)
    except InvalidContentError as error:
        raise BuddysimError(f"{where}: {_problem_in_json(error, text, adapter)}") from None
    check_keys(text, where)
    return content


def _problem_in_json(error: InvalidContentError, text: bytes, adapter: TypeAdapter[Any]) -> str:
    """Return the first problem of an error about a JSON text."""
    try:
        content = parse_json(decoded(text, ""))
    except BuddysimError:  # of another kind than pydantic's
        content = None
    return problem_of(error.problems, content, adapter.json_schema)


def problem_of(problems: Sequence[ErrorDetails], content: object, json_schema: Any) -> str:
    """Return the first of some problems: the field, what was expected and what is there.

    Parameters
    ----------
    problems : as pydantic describes them
    content : that was checked; None where there is only its text
    json_schema : returns the JSON schema
    """
    problem = problems[0]
    path = _within(content, problem["loc"]) if content is not None else problem["loc"]
    field = _dotted(path)
    if problem["type"] == "extra_forbidden":
        names = _names(json_schema(), path[:-1])
        return f"{field}: expected one of {', '.join(names)}{hint(str(path[-1]), names)}"
    if problem["type"] in ("missing", "missing_argument"):
        return f"{field} is missing"
    if problem["type"] == "union_tag_not_found":
        return f"{problem['ctx']['discriminator']} is missing"
    if problem["type"] == "unexpected_keyword_argument":
        names = _names(json_schema(), path[:-1])
        return f"{field}: expected one of {', '.join(names)}{hint(str(path[-1]), names)}"
    if problem["type"] == "json_invalid":
        return f"not valid JSON: {problem['ctx']['error']}"
    return f"{field or 'content'}: expected {_expected(problem)}, got {shortened(problem['input'])}"


def _expected(problem: ErrorDetails) -> str:
    if problem["type"] == "literal_error":
        names = problem["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        near = hint(problem["input"], names) if isinstance(problem["input"], str) else ""
        return f"one of {', '.join(names)}{near}" if len(names) > 1 else names[0]
    if problem["type"] not in _EXPECTED:
        message = problem["msg"].replace("\n", " ")
        return message.removeprefix("Input should be ").removeprefix("Value should be ")
    bounds = {
        name: f"{value:g}" if isinstance(value, float) else value for name, value in problem.get("ctx", {}).items()
    }
    return _EXPECTED[problem["type"]].format(**bounds)


def _within(content: object, location: Sequence[int | str]) -> list[int | str]:
    """Return a location without the names of a union's members, which pydantic puts between the parts of the path."""
    path: list[int | str] = []
    location = [part for part in location if part != "[key]"]
    for number, part in enumerate(location):
        if part in _keys(content):
            content = content[part]  # type: ignore[index]
        elif not isinstance(content, Mapping) or number + 1 < len(location):
            continue
        path.append(part)
    return path


def _keys(content: object) -> Iterable[object]:
    return content if isinstance(content, Mapping) else range(len(content)) if isinstance(content, list | tuple) else ()


def _dotted(path: Sequence[int | str]) -> str:
    """Return a path as people write it: ``layer[2].kind``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{shortened(part)[1:-1]}"
    return text.removeprefix(".")


def _names(schema: Mapping[str, Any], path: Sequence[int | str]) -> list[str]:
    """Return the names of the fields of the table at a path."""
    tables = [schema]
    for part in (*path, None):
        tables = [inner for table in tables for inner in _alternatives(schema, table)]
        if part is None:
            break
        tables = [inner for table in tables for inner in _inner(table, part)]
    return list(dict.fromkeys(name for table in tables for name in table.get("properties", {})))


def _alternatives(schema: Mapping[str, Any], table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas that a schema stands for: what it refers to, the members of a union."""
    if "$ref" in table:
        return _alternatives(schema, schema["$defs"][table["$ref"].rpartition("/")[2]])
    members = [*table.get("anyOf", ()), *table.get("oneOf", ())]
    return [one for member in members for one in _alternatives(schema, member)] if members else [table]


def _inner(table: Mapping[str, Any], part: int | str) -> list[Mapping[str, Any]]:
    inner = table.get("items") if isinstance(part, int) else table.get("properties", {}).get(part)
    inner = inner or table.get("additionalProperties")
    return [inner] if isinstance(inner, Mapping) else []
