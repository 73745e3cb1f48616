"""Results as tidy rows in a Parquet file: one row per number, beside what it was measured on.

| column | what |
|---|---|
| `trace`, `trace_checksum`, `machine`, `machine_checksum`, `seed`, `scheme` | the run |
| `scope` | ``run``, ``kernel`` or ``allocation`` |
| `index`, `name` | of the kernel or allocation; null for a run |
| `counter` | the key of docs/counters.md; one of a list has its position as last part |
| `value` | the number, as float64 (whole numbers are exact up to 2^53); null where it is a text |
| `text` | the text, for example a target ratio; null where it is a number |
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from buddysim.base.atomic import write_whole
from buddysim.base.errors import BuddysimError

_SCOPES = {"per_kernel": "kernel", "per_allocation": "allocation"}
_RUN_COLUMNS = ("trace", "trace_checksum", "machine", "machine_checksum", "seed")
_APART = ("provenance", *_SCOPES)

Row = dict[str, Any]


def tidy_rows(results: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """The rows of some results, as dicts with the columns above."""
    for scheme, result in results.items():
        run = {column: result["provenance"][column] for column in _RUN_COLUMNS} | {"scheme": scheme}
        for counter in sorted(result):
            if counter not in _APART:
                yield from _rows(run | {"scope": "run", "index": None, "name": None}, counter, result[counter])
        for list_name, scope in _SCOPES.items():
            for part in result[list_name]:
                place = run | {"scope": scope, "index": part["index"], "name": part["name"]}
                for counter in sorted(part):
                    if counter not in ("index", "name"):
                        yield from _rows(place, counter, part[counter])


def _rows(place: Row, counter: str, value: Any) -> Iterator[Row]:
    if isinstance(value, list | tuple):
        for position, element in enumerate(value):
            yield from _rows(place, f"{counter}.{position}", element)
    elif isinstance(value, str):
        yield place | {"counter": counter, "value": None, "text": value}
    else:
        yield place | {"counter": counter, "value": None if value is None else float(value), "text": None}


def check_parquet() -> None:
    """A BuddysimError that says what to install where Parquet can't be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise BuddysimError(
            "--parquet needs pyarrow, which is not installed: pip install 'buddysim[data]' (or pip install pyarrow)"
        ) from None


def write_parquet(path: str | os.PathLike[str], results: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes the results as tidy rows."""
    check_parquet()
    import pyarrow as pa
    import pyarrow.parquet

    text, number, whole = pa.string(), pa.float64(), pa.int64()
    schema = pa.schema(
        [(column, whole if column == "seed" else text) for column in (*_RUN_COLUMNS, "scheme")]
        + [("scope", text), ("index", whole), ("name", text), ("counter", text), ("value", number), ("text", text)]
    )
    table = pa.Table.from_pylist(list(tidy_rows(results)), schema=schema)

    def write(unfinished: Path) -> None:
        pyarrow.parquet.write_table(table, unfinished)

    write_whole(path, write)
