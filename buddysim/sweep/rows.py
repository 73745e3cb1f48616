"""Rows of results as Arrow tables: from lines of JSON, and from Parquet files."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_BLOCK_BYTES = 1 << 24


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Any:
    """The Arrow table of a Parquet file, its pages' checksums verified; None: all columns.

    `pyarrow.parquet.read_table` does the same, and imports pandas first, which takes a third of a second.

    Raises
    ------
    OSError, ValueError
        a file that can't be read, is damaged, or lacks a column
    """
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, page_checksum_verification=True) as file:
        missing = set(columns or ()) - {*file.schema_arrow.names}
        if missing:
            raise ValueError(f"no column {', '.join(sorted(missing))}")
        return file.read(columns)


def rows_table(lines: Sequence[bytes]) -> Any:
    """A table with the columns of all rows; what a row lacks is null.

    Parameters
    ----------
    lines : an object each: texts, numbers and switches by column
    """
    import pyarrow as pa
    import pyarrow.json as arrow_json

    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    known: dict[str, Any] = {}
    for line in (lines[0], lines[len(lines) // 2], lines[-1]):
        known |= {name: kinds[type(value)] for name, value in json.loads(line).items() if value is not None}
    parse = arrow_json.ParseOptions(explicit_schema=pa.schema(list(known.items())))
    content = io.BytesIO(b"\n".join(lines))
    try:
        read = arrow_json.ReadOptions(block_size=_BLOCK_BYTES)
        return arrow_json.read_json(content, read_options=read, parse_options=parse)
    except pa.ArrowInvalid:  # integers in some rows and others in some, or columns that come late
        return _table_of_any(lines)


def _table_of_any(lines: Sequence[bytes]) -> Any:
    import pyarrow as pa

    rows = [json.loads(line) for line in lines]
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
