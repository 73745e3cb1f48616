"""Rows of results as Arrow tables: from lines of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from buddysim.base.parsers.arrow import table_of_lines
from buddysim.base.parsers.json_text import loads

_ROWS = "rows of results"


def rows_table(lines: Sequence[bytes]) -> Any:
    """A table with the columns of all rows; what a row lacks is null.

    Parameters
    ----------
    lines : an object each: texts, numbers and switches by column
    """
    import pyarrow as pa

    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    known: dict[str, Any] = {}
    for line in (lines[0], lines[len(lines) // 2], lines[-1]):
        known |= {name: kinds[type(value)] for name, value in loads(line, _ROWS).items() if value is not None}
    table = table_of_lines(lines, [*known.items()])
    return _table_of_any(lines) if table is None else table


def _table_of_any(lines: Sequence[bytes]) -> Any:
    import pyarrow as pa

    rows = [loads(line, _ROWS) for line in lines]
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        types = {type(value) for value in values if value is not None}
        if str in types and len(types) > 1:
            values = [None if value is None else str(value) for value in values]
        elif types == {int, float} or any(isinstance(value, int) and abs(value) >= 2**63 for value in values):
            values = [None if value is None else float(value) for value in values]
        columns[name] = pa.array(values)
    return pa.table(columns)
