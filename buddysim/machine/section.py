"""The base of the sections of a machine file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from buddysim.base.parsers.typed import InvalidContentError, model_of
from buddysim.machine import fields
from buddysim.machine.units import Bandwidth, Time, canonical

Duration = Annotated[Time, fields.duration()]
PositiveDuration = Annotated[Time, fields.duration(zero=False)]
Rate = Annotated[Bandwidth, fields.bandwidth()]
SteadyRate = Annotated[Bandwidth, fields.bandwidth(per_cycle=False)]
Switch = Annotated[bool, fields.switch()]


class Section(BaseModel):
    """A part of a machine: frozen, and an unknown key is an error."""

    #: Rules between keys that validators check, as sentences for documents.
    RULES: ClassVar[tuple[str, ...]] = ()

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False)


S = TypeVar("S", bound=Section)


def parse_section(section: type[S], content: object, problems: list[ErrorDetails], name: str = "") -> S | None:
    """Return a section from a file's content; None if the content is wrong.

    Parameters
    ----------
    section : class of the section
    content : the file's value, a table if it is right
    problems : list that gets the problems
    name : name of the section, before its keys in `problems`
    """
    try:
        return model_of(section, content, name or "machine")
    except InvalidContentError as error:
        errors = error.problems
        problems += [{**problem, "loc": (name, *problem["loc"])} for problem in errors] if name else errors
        return None


@cache
def field_keys(section: type[BaseModel], prefix: str = "") -> tuple[tuple[str, FieldInfo], ...]:
    """The dotted keys of a section and of the sections in it, with their fields, in their order."""
    named_fields: list[tuple[str, FieldInfo]] = []
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            named_fields += field_keys(field.annotation, f"{prefix}{name}.")
        else:
            named_fields.append((prefix + name, field))
    return tuple(named_fields)


def value_of(field: FieldInfo) -> fields.Value:
    """Return what reads the values of a key."""
    marks = [*field.metadata, *(mark for part in get_args(field.annotation) for mark in get_args(part))]
    return next(mark for mark in marks if isinstance(mark, fields.Value))


def default_text(field: FieldInfo) -> str:
    """Return the default of a key as a machine file has it; none if the default is None."""
    default = field.get_default(call_default_factory=True)
    if default is None:
        return "none"
    written = value_of(field).write(default)
    return str(written).lower() if isinstance(written, bool) else str(written)


def figures(value: object, key: str = "") -> Iterator[tuple[str, Any]]:
    """Return dotted keys and values of a section, or of sections by name, without values that are None."""
    if isinstance(value, Section):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from figures(inner, f"{key}.{name}" if key else name)
    elif value is not None:
        yield key, value


def canonical_figures(value: object, key: str = "") -> dict[str, Any]:
    """`figures` as plain values: quantities in one unit, however a file wrote them."""
    return {name: canonical(figure) for name, figure in figures(value, key)}
