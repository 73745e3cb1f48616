"""Many single results as one Parquet file of the store, whose rows DuckDB reads in place.

A part has the columns of all rows, and `record`, the bytes of each single file. Nothing is removed before every process
on every computer can see the part: one call writes it, a later one removes the single files that it holds.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.parsers.arrow import read_parquet
from buddysim.sweep.rows import rows_table
from buddysim.sweep.stored_result import DamagedResultError, NewerResultError, body_of, key_of_row

if TYPE_CHECKING:
    from buddysim.sweep.store import Store

#: Other computers see a new file within this: what network file systems cache a folder for, and a reserve.
VISIBLE_AFTER_S = 120.0
_MAX_RESULTS = 20_000
RECORD = "record"
_REMOVE = "remove it to simulate again"


def names(part: Path) -> dict[str, int]:
    """Positions of the results of a part, by name."""
    column = read_part(part, {"key": str})["key"]
    return {name: position for position, name in enumerate(column)}


def content(part: Path, position: int) -> bytes:
    """The bytes of the single file of a result."""
    record = _records(str(part))[position].as_py()
    if not isinstance(record, bytes):
        raise BuddysimError(f"{part}: damaged: {RECORD}: expected bytes: {_REMOVE}")
    return record


@lru_cache(8)
def _records(part: str) -> Any:
    return _table(Path(part), [RECORD]).column(RECORD)


def read_part(part: Path, columns: Mapping[str, type]) -> dict[str, list[Any]]:
    """Return the values of some columns of a part, each value of its column's type.

    Raises
    ------
    BuddysimError
        a damaged part, one without such a column, or with values of another type
    """
    table = _table(part, [*columns])
    values = {name: table.column(name).to_pylist() for name in columns}
    for name, kind in columns.items():
        if not all(type(value) is kind for value in values[name]):
            raise BuddysimError(f"{part}: damaged: {name}: expected values of type {kind.__name__}: {_REMOVE}")
    return values


def _table(part: Path, columns: list[str]) -> Any:
    try:
        return read_parquet(part, f"{part}: damaged", columns)
    except ImportError:
        raise BuddysimError(
            f"{part.parent}: compacted results need pyarrow, which is not installed: pip install 'buddysim[sweep]'"
        ) from None
    except BuddysimError as error:
        raise BuddysimError(f"{error}: {_REMOVE}") from None


def compact(store: Store, visible_after_s: float = VISIBLE_AFTER_S) -> tuple[int, int]:
    """Write single results into parts, and remove single files whose part is old enough.

    Returns
    -------
    results written to new parts, single files removed
    """
    store.check_writable()
    store.parts.mkdir(exist_ok=True)
    removed = _remove_held(store, visible_after_s)
    single = sorted(store.singles().keys() - _held(store))
    written = sum(_write(store, single[at : at + _MAX_RESULTS]) for at in range(0, len(single), _MAX_RESULTS))
    return written, removed


def _held(store: Store) -> set[str]:
    return {name for part in store.part_names() for name in names(store.parts / part)}


def _remove_held(store: Store, visible_after_s: float) -> int:
    removed = 0
    for part in store.part_names():
        path = store.parts / part
        if time.time() - path.stat().st_mtime < visible_after_s:
            continue
        held = read_part(path, {"key": str, RECORD: bytes})
        for name, record in zip(held["key"], held[RECORD], strict=True):
            if store.path_of(name).exists() and _is_whole(record):
                store.remove(name)
                removed += 1
    return removed


def _is_whole(record: bytes) -> bool:
    try:
        body_of(record)
    except (DamagedResultError, NewerResultError):
        return False
    return True


def _write(store: Store, keys: Iterable[str]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rows, records = [], []
    for row, record in _whole(store, keys):
        rows.append(row)
        records.append(record)
    if not rows:
        return 0
    table = rows_table(rows).append_column(RECORD, pa.array(records, pa.binary()))
    file = io.BytesIO()
    parquet.write_table(table, file, write_page_checksum=True, compression="zstd", row_group_size=2000)
    packed = file.getvalue()
    store.write(store.parts / f"{hashlib.sha256(packed).hexdigest()[:32]}.parquet", packed)
    return len(rows)


def _whole(store: Store, keys: Iterable[str]) -> Iterator[tuple[bytes, bytes]]:
    for name in keys:
        try:
            record = store.path_of(name).read_bytes()
            row = body_of(record).split(b"\n", 1)[0]
            key_of_row(row)
            yield row, record
        except (FileNotFoundError, DamagedResultError, NewerResultError):
            continue
