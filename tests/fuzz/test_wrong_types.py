"""A wrong type in any field of any schema is one line: the field, what was expected, what is there."""

from __future__ import annotations

from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.base.schema import Schema
from tests.fuzz.schemas import TypedFile, typed_files
from tests.fuzz.wrong_types import ANY, VALUES, fields_of, right_values, with_value, wrong_values

FILES = typed_files()


def test_fields_come_from_the_schema() -> None:
    inner = {"type": "object", "properties": {"c": {"type": "integer", "minimum": 1}}, "required": ["c"]}
    a, b = {"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "array", "items": inner}
    schema = {"type": "object", "properties": {"a": a, "b": b}}
    fields = dict(fields_of(schema))
    assert list(fields) == [("a",), ("b",), ("b", 0), ("b", 0, "c")]
    assert wrong_values(fields["a",]) == [value for value in VALUES if value is not None and not isinstance(value, str)]
    assert wrong_values(fields["b", 0, "c"])[-1] == 0
    assert right_values(fields["b", 0, "c"]) == [1]
    assert with_value(schema, {}, ("b", 0, "c"), "x") == {"b": [{"c": "x"}]}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.replace(" ", "-"))
def test_a_wrong_type_is_one_line(file: TypedFile) -> None:
    file.check(file.good)
    for path, schemas in fields_of(file.json_schema):
        for value in wrong_cells(schemas) if file.cells else wrong_values(schemas):
            line = refusal(file, with_value(file.json_schema, file.good, path, value))
            if value is None and file.null_is_missing:
                continue
            assert line.startswith("FILE: "), (path, value, line)
            assert line.isprintable(), (path, value, line)
            names = [part for part in path if isinstance(part, str) and part != ANY]
            assert any(name in line for name in names) or not names, (path, value, line)
            assert "expected" in line, (path, value, line)


def wrong_cells(schemas: list[Any]) -> list[str]:
    """Return wrong values as a row of CSV has them; any text fits a field of texts."""
    if any(schema.get("type") == "string" and not {"enum", "const"} & set(schema) for schema in schemas):
        return []
    values = wrong_values(schemas)
    return [str(value) for value in values if isinstance(value, str | int | float) and not isinstance(value, bool)]


def subclasses(schema: type[Schema]) -> set[type[Schema]]:
    """Return the package's schemas that are made from one, without those of other tests."""
    own = [child for child in schema.__subclasses__() if child.__module__.startswith("buddysim.")]
    return {one for child in own for one in {child, *subclasses(child)}}


def test_every_schema_is_tried() -> None:
    """Those of files; a table within a file is a part of its JSON schema."""
    titles = {file.json_schema.get("title") for file in FILES}
    titles |= {name for file in FILES for name in file.json_schema.get("$defs", {})}
    public = {one.__name__ for one in subclasses(Schema) if not one.__name__.startswith("_")}
    assert public - titles <= {"PlanFields"}


def refusal(file: TypedFile, content: Any) -> str:
    """Return the line that refuses a content; empty if it is accepted."""
    try:
        file.check(content)
    except BuddysimError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.replace(" ", "-"))
def test_values_at_the_bounds_are_accepted_or_refused_for_a_reason(file: TypedFile) -> None:
    for path, schemas in fields_of(file.json_schema):
        for value in right_values(schemas):
            line = refusal(file, with_value(file.json_schema, file.good, path, value))
            assert not line or line.startswith("FILE: "), (path, value)
