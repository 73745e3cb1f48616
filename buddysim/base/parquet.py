"""Results of either engine as tidy rows in a Parquet file: one row per number, with its run.

| column | content |
|---|---|
| `trace`, `trace_checksum`, `machine`, `machine_checksum`, `seed`, `scheme` | the run, of a replay |
| `network`, `network_checksum`, `batch`, `machine`, `machine_checksum`, `scheme` | the run, of a training iteration |
| `scope` | ``run``, or the part that the number is of: ``kernel``, ``allocation`` or ``layer`` |
| `index`, `name` | of the kernel, allocation or layer; null for a run |
| `counter` | the counter's key; an element of a list or an object has its index or key as last part |
| `value` | the number, as float64 (integers are exact up to 2^53); null where it is a text |
| `text` | the text, for example a target ratio; null where it is a number |
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.output import write_opened

#: The columns that identify a run, those that its provenance has, and whether each is an integer.
_RUN_COLUMNS = {
    "trace": False,
    "trace_checksum": False,
    "network": False,
    "network_checksum": False,
    "batch": True,
    "machine": False,
    "machine_checksum": False,
    "seed": True,
}
#: Prefix of the keys of a result's parts: `per_kernel` has an element for each kernel.
_PARTS = "per_"

Row = dict[str, Any]


def tidy_rows(results: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """The rows of results, as dicts with the columns above.

    Parameters
    ----------
    results : what `SchemeResult.to_dict` gives, by scheme name; all of one engine
    """
    for scheme, result in results.items():
        provenance = result["provenance"]
        run = {column: provenance[column] for column in _RUN_COLUMNS if column in provenance} | {"scheme": scheme}
        parts = [key for key in result if key.startswith(_PARTS)]
        for counter in sorted(result):
            if counter not in ("provenance", *parts):
                yield from _rows(run | {"scope": "run", "index": None, "name": None}, counter, result[counter])
        for key in parts:
            for part in result[key]:
                where = run | {"scope": key.removeprefix(_PARTS), "index": part["index"], "name": part["name"]}
                for counter in sorted(part):
                    if counter not in ("index", "name"):
                        yield from _rows(where, counter, part[counter])


def _rows(where: Row, counter: str, value: Any) -> Iterator[Row]:
    if isinstance(value, Mapping):
        for key, element in value.items():
            yield from _rows(where, f"{counter}.{key}", element)
    elif isinstance(value, list | tuple):
        for position, element in enumerate(value):
            yield from _rows(where, f"{counter}.{position}", element)
    elif isinstance(value, str):
        yield where | {"counter": counter, "value": None, "text": value}
    else:
        yield where | {"counter": counter, "value": None if value is None else float(value), "text": None}


def check_parquet() -> None:
    """Raises a BuddysimError that names what to install if Parquet can't be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise BuddysimError(
            "--parquet needs pyarrow, which is not installed: pip install 'buddysim[data]' (or pip install pyarrow)"
        ) from None


def write_parquet(path: str | os.PathLike[str], results: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes the results as tidy rows; the arguments are those of `tidy_rows`."""
    check_parquet()
    import pyarrow as pa
    import pyarrow.parquet

    text, number, whole = pa.string(), pa.float64(), pa.int64()
    rows = [
        {column: _as_text(value) if isinstance(value, str) else value for column, value in row.items()}
        for row in tidy_rows(results)
    ]
    schema = pa.schema(
        [(column, whole if _RUN_COLUMNS[column] else text) for column in _RUN_COLUMNS if column in rows[0]]
        + [("scheme", text), ("scope", text), ("index", whole), ("name", text)]
        + [("counter", text), ("value", number), ("text", text)]
    )
    table = pa.Table.from_pylist(rows, schema=schema)
    write_opened(path, lambda file: pyarrow.parquet.write_table(table, file))


def _as_text(value: str) -> str:
    """What UTF-8 doesn't have (bytes of a file name that are no text) is escaped."""
    return value.encode("utf-8", "backslashreplace").decode()
