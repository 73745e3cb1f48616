"""Many single results as one Parquet file of the store, whose rows DuckDB reads in place.

A part has the columns of all rows, and `record`, the bytes of each single file. Nothing is removed before every process
on every computer can see the part: one call writes it, a later one removes the single files that it holds.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.sweep.rows import read_parquet, rows_table
from buddysim.sweep.stored_result import DamagedResultError, body_of, key_of_row

if TYPE_CHECKING:
    from buddysim.sweep.store import Store

#: Other computers see a new file within this: what network file systems cache a folder for, and a reserve.
VISIBLE_AFTER_S = 120.0
_MAX_RESULTS = 20_000
RECORD = "record"


def names(part: Path) -> dict[str, int]:
    """Positions of the results of a part, by name."""
    column = _read(part, ["key"]).column("key").to_pylist()
    return {name: position for position, name in enumerate(column)}


def content(part: Path, position: int) -> bytes:
    """The bytes of the single file of a result."""
    return bytes(_records(str(part))[position].as_py())


@lru_cache(8)
def _records(part: str) -> Any:
    return _read(Path(part), [RECORD]).column(RECORD)


def _read(part: Path, columns: list[str]) -> Any:
    try:
        return read_parquet(part, columns)
    except ImportError:
        raise BuddysimError(
            f"{part.parent}: compacted results need pyarrow, which is not installed: pip install 'buddysim[sweep]'"
        ) from None
    except (OSError, ValueError) as error:
        raise BuddysimError(f"{part}: damaged: {' '.join(str(error).split())}: remove it to simulate again") from None


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
        records = _read(path, ["key", RECORD])
        for name, record in zip(records.column("key").to_pylist(), records.column(RECORD).to_pylist(), strict=True):
            if store.path_of(name).exists() and _is_whole(record):
                store.remove(name)
                removed += 1
    return removed


def _is_whole(record: bytes) -> bool:
    try:
        body_of(record)
    except DamagedResultError:
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
        except (FileNotFoundError, DamagedResultError):
            continue
