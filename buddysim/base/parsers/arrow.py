"""Tables of Arrow: from Parquet files, and from lines of JSON."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.parsers.refusal import refusal

_BLOCK_BYTES = 1 << 24
_SCHEMA = attrgetter("schema_arrow")


def read_parquet(path: str | os.PathLike[str], begin: str, columns: Sequence[str] | None = None) -> Any:
    """Return the table of a Parquet file, its pages' checksums verified.

    `pyarrow.parquet.read_table` does the same, and imports pandas first, which takes a third of a second.

    Parameters
    ----------
    begin : of an error
    columns : None: all

    Raises
    ------
    BuddysimError
        where it can't be read, is damaged, or lacks a column
    """
    from pyarrow.parquet import ParquetFile

    file = _called(partial(ParquetFile, path, page_checksum_verification=True), begin)
    with file:
        missing = set(columns or ()) - {*_called(partial(_SCHEMA, file), begin).names}
        if missing:
            raise BuddysimError(f"{begin}: no column {', '.join(sorted(missing))}")
        return _called(partial(file.read, columns), begin)


def parquet_schema(path: str | os.PathLike[str], begin: str) -> Any:
    """Return the columns of a Parquet file, with their types.

    Parameters
    ----------
    begin : of an error

    Raises
    ------
    BuddysimError
        where it can't be read
    """
    from pyarrow.parquet import ParquetFile

    with _called(partial(ParquetFile, path), begin) as file:
        return _called(partial(_SCHEMA, file), begin)


def table_of_lines(lines: Sequence[bytes], columns: Sequence[tuple[str, Any]]) -> Any:
    """Return the table of lines of JSON, an object each; None where their values are of no common type.

    Parameters
    ----------
    columns : names and types that are known; the others are found
    """
    import pyarrow as pa
    import pyarrow.json as arrow_json

    content = io.BytesIO(b"\n".join(lines))
    options = {
        "read_options": arrow_json.ReadOptions(block_size=_BLOCK_BYTES),
        "parse_options": arrow_json.ParseOptions(explicit_schema=pa.schema([*columns])),
    }
    try:
        return arrow_json.read_json(content, **options)
    except pa.ArrowInvalid:  # integers in some rows and others in some, or columns that come late
        return None
    except Exception as error:
        raise refusal(error, "rows of results") from None


def _called(call: Callable[[], Any], begin: str) -> Any:
    try:
        return call()
    except Exception as error:
        raise refusal(error, begin) from None
