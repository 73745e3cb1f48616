"""Results as `run --json`, `train --json` and stores save them, checked once where they are read.

The definitions of the counters are the schema: the unit says whether a value is a text, a switch, names or a number,
and the word "null" says that there may be none. Keys that nothing defines may hold anything, as plug-ins add some.
Where a counter is missing, its reader finds out: the tables are of `SavedTable`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from buddysim.base.budget import within_budget
from buddysim.base.counter import unit_and_text
from buddysim.base.errors import BuddysimError
from buddysim.base.kinds import registry
from buddysim.base.parsers.typed import InvalidContentError, validated
from buddysim.base.plugin_modules import source_of_module
from buddysim.base.saved_table import SavedTable, saved_tables
from buddysim.base.schema import problem_of
from buddysim.base.textfile import LARGEST_NUMBER, read_json

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, SchemaValidator

MAX_FILE_BYTES = 2**28
#: Modules whose ``COUNTERS`` are those of every result of an engine; as text, as `kinds` names registries.
_DEFINITIONS = ("buddysim.replay.counter_definitions", "buddysim.training.counter_definitions")
#: Counters that are lists of numbers.
_LISTS = re.compile(r".*_histogram|device\.channel_.*|sensitivity\.(time_ps|compression_ratio)")
#: Counters that are tables of numbers.
_TABLES = re.compile(r"memory\.(by_kind|saved_by_.*)")
_PROVENANCE = "provenance"
#: Each result has one of them, by its engine.
_TIMES = {"time_ps", "time_ms"}
_COMMANDS = "'run --json' or 'train --json' writes it"


@within_budget
def read_results(
    path: str | os.PathLike[str], written_by: str = _COMMANDS, text_of: Callable[[str], str] = str
) -> SavedTable:
    """Return the results in a file by scheme.

    Parameters
    ----------
    written_by : of the message about a file of other contents
    text_of : what becomes of each text

    Raises
    ------
    BuddysimError
        where it can't be read or isn't one of results; the first counter that isn't what its definition says
    """
    content = read_json(path, "result", MAX_FILE_BYTES)
    if not _is_of_results(content):
        raise BuddysimError(f"{os.fspath(path)}: not a result as {written_by}")
    for scheme, result in content.items():
        check_result(result, f"{os.fspath(path)}: {scheme}")
    results: SavedTable = saved_tables(content, os.fspath(path), text_of)
    return results


def check_result(result: Mapping[str, Any], where: str) -> None:
    """Refuse the result of a scheme in which a counter isn't what its definition says.

    Raises
    ------
    BuddysimError
        begins with `where`, names the counter and what it should be
    """
    _check(_of_results().validate_python, result, where)


def check_row(row: Mapping[str, Any], where: str) -> None:
    """Refuse a row of a table of results, as `check_result` does: counters next to settings, no tables."""
    _check(_of_rows().validate_python, row, where)


def _check(validate: Callable[[Any], Any], content: Mapping[str, Any], where: str) -> None:
    try:
        validated(validate, content, where)
    except InvalidContentError as error:
        raise BuddysimError(f"{where}: {problem_of(error.problems, content, dict)}") from None


def _is_of_results(content: Any) -> bool:
    return isinstance(content, dict) and bool(content) and all(map(_is_result, content.values()))


def _is_result(content: Any) -> bool:
    is_table = isinstance(content, dict) and isinstance(content.get(_PROVENANCE), dict)
    return is_table and not _TIMES.isdisjoint(content)


def counters() -> Iterator[tuple[str, str, str]]:
    """Name, unit and definition of every counter: those of both engines, and of the package's replay schemes."""
    for module in _DEFINITIONS:
        for counter in import_module(module).COUNTERS.values():
            yield counter.name, counter.unit, counter.text
    for _, scheme in registry("replay scheme").items():
        if source_of_module(scheme.__module__) is None:
            for name, definition in {**scheme.COUNTERS, **scheme.ENGINE_COUNTERS}.items():
                yield name, *unit_and_text(definition)


@cache
def _of_results() -> SchemaValidator:
    from pydantic_core import SchemaValidator, core_schema

    of_whole: dict[str, CoreSchema] = {}
    of_parts: dict[str, dict[str, CoreSchema]] = {}
    for name, unit, text in counters():
        part, _, key = name.partition(".")
        if part == _PROVENANCE:
            continue
        in_part = part.startswith("per_")
        (of_parts.setdefault(part, {}) if in_part else of_whole)[key if in_part else name] = _schema(name, unit, text)
    for part, keys in of_parts.items():
        of_whole[part] = core_schema.list_schema(_table(keys))
    of_whole[_PROVENANCE] = core_schema.dict_schema(core_schema.str_schema())
    return SchemaValidator(_table(of_whole))


@cache
def _of_rows() -> SchemaValidator:
    from pydantic_core import SchemaValidator, core_schema

    flat = {
        name: _schema(name, unit, text)
        for name, unit, text in counters()
        if not (name.startswith(("per_", f"{_PROVENANCE}.")) or _LISTS.fullmatch(name) or _TABLES.fullmatch(name))
    }
    cell = core_schema.union_schema(
        [core_schema.bool_schema(strict=True), _number(-LARGEST_NUMBER), core_schema.str_schema(strict=True)]
    )
    return SchemaValidator(_table(flat, core_schema.nullable_schema(cell)))


def _schema(name: str, unit: str, text: str) -> CoreSchema:
    """What the definition of a counter says of its value."""
    from pydantic_core import core_schema

    value: CoreSchema
    if unit == "text":
        value = core_schema.str_schema(strict=True)
    elif unit == "true or false":
        value = core_schema.bool_schema(strict=True)
    elif unit == "names":
        value = core_schema.dict_schema(core_schema.str_schema(), core_schema.str_schema(strict=True))
    elif _LISTS.fullmatch(name):
        value = core_schema.list_schema(_number())
    elif _TABLES.fullmatch(name):
        value = core_schema.dict_schema(core_schema.str_schema(), _number())
    else:
        value = _number()
    return core_schema.nullable_schema(value) if "null" in text else value


def _number(least: float = 0) -> CoreSchema:
    from pydantic_core import core_schema

    return core_schema.float_schema(strict=True, allow_inf_nan=False, ge=least, le=LARGEST_NUMBER)


def _table(keys: Mapping[str, CoreSchema], others: CoreSchema | None = None) -> CoreSchema:
    """A table of which any key may be missing, and other keys are of a schema, or of none."""
    from pydantic_core import core_schema

    fields = {name: core_schema.typed_dict_field(schema, required=False) for name, schema in keys.items()}
    return core_schema.typed_dict_schema(fields, extra_behavior="allow", extras_schema=others)
