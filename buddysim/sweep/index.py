"""The rows of a store as Parquet files in a local cache: what queries read. It can be lost: it is made anew.

Only files that the index doesn't know yet, or that have another size or time than when it read them, are read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buddysim.base.cache import cache_subfolder
from buddysim.base.errors import BuddysimError
from buddysim.base.parsers.arrow import parquet_schema, read_parquet
from buddysim.sweep.abandoned import remove_abandoned
from buddysim.sweep.rows import rows_table
from buddysim.sweep.stored_result import DamagedResultError, NewerResultError, body_of, key_of_row

if TYPE_CHECKING:
    from buddysim.sweep.store import Store

VERSION = 1
_ROWS_PER_FILE = 10_000
_READERS = 8
#: Files that a thread reads before it takes the next: one by one, handing them out costs as much as reading them.
_CHUNK = 64
_MAX_FILES = 20
#: Columns about the file that a row was read from.
SIZE, CHANGED = "file_bytes", "file_changed_ns"


def installed() -> bool:
    """Return whether the packages that an index needs are installed."""
    from importlib.util import find_spec

    return find_spec("pyarrow") is not None and find_spec("duckdb") is not None


class Index:
    """The index of a store.

    Parameters
    ----------
    store : the store; its notes get the damaged files
    folder : the index's folder; None: one in the cache, for the store's path
    """

    def __init__(self, store: Store, folder: Path | None = None) -> None:
        self.store = store
        key = hashlib.sha256(os.fsencode(store.folder.resolve())).hexdigest()[:24]
        self.folder = folder or cache_subfolder(f"index/{VERSION}-{key}")
        self._names: set[str] = set()

    def refresh(self) -> Index:
        """Brings the index up to date with the store."""
        singles = self.store.singles()  # before the parts: see `Store.names`
        parts = {name for part in self.store.part_names() for name in self.store.keys_in(part)}
        unmerged = {name: stamp for name, stamp in singles.items() if name not in parts}
        known = self._known()
        retained = {name for name, stamp in known.items() if unmerged.get(name) == stamp}
        if len(retained) < len(known) or len(self._files()) > _MAX_FILES:
            self._drop(retained)
        new = [name for name in unmerged if name not in retained]
        read: set[str] = set()
        for at in range(0, len(new), _ROWS_PER_FILE):
            read |= self._add(new[at : at + _ROWS_PER_FILE])
        self._names = retained | read | parts
        return self

    def all_keys(self) -> set[str]:
        """The names of results whose files were read and are whole."""
        return self._names

    def files(self) -> list[str]:
        """Return the Parquet files of all rows: the index's files and the store's parts."""
        own = [str(path) for path in self._files()]
        return own + [str(self.store.parts / part) for part in self.store.part_names()]

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def _known(self) -> dict[str, tuple[int, int]]:
        """Return size and time of each indexed file, by name; damaged files of the index are dropped."""
        stamps: dict[str, tuple[int, int]] = {}
        for path in self._files():
            try:
                columns = read_parquet(path, str(path), ["key", SIZE, CHANGED])
            except BuddysimError:
                path.unlink(missing_ok=True)
                continue
            name, size, changed = (columns.column(each).to_pylist() for each in ("key", SIZE, CHANGED))
            stamps.update(zip(name, zip(size, changed, strict=True), strict=True))
        return stamps

    def _drop(self, retained: set[str]) -> None:
        """Write the rows of these names again into one file, each once, and remove the others."""
        import pyarrow as pa

        old = self._files()
        if old and retained:
            schemas = [parquet_schema(path, str(path)) for path in old]
            schema = pa.unify_schemas(schemas, promote_options="permissive")
            self._write(schema, self._rows_of(old, retained, schema))
        for path in old:
            path.unlink(missing_ok=True)

    @staticmethod
    def _rows_of(files: Iterable[Path], retained: set[str], schema: Any) -> Iterator[Any]:
        """Yield the rows of these names, each once; one file is in memory at a time."""
        import pyarrow as pa

        seen = set[str]()
        for path in files:
            table, keep = read_parquet(path, str(path)), []
            for name in table.column("key").to_pylist():
                keep.append(name in retained and name not in seen)
                seen.add(name)
            yield pa.concat_tables([schema.empty_table(), table.filter(pa.array(keep))], promote_options="permissive")

    def _add(self, names: Iterable[str]) -> set[str]:
        """Read the files of these names; return the complete ones."""
        import pyarrow as pa

        waiting = list(names)
        with ThreadPoolExecutor(_READERS) as pool:
            chunks = [waiting[first : first + _CHUNK] for first in range(0, len(waiting), _CHUNK)]
            read = [row for rows in pool.map(self._rows, chunks) for row in rows]
        if not read:
            return set()
        table = rows_table([row for _, row, _ in read])
        for position, column in enumerate((SIZE, CHANGED)):
            table = table.append_column(column, pa.array([stamp[position] for _, _, stamp in read], pa.int64()))
        self._write(table.schema, [table])
        return {name for name, _, _ in read}

    def _rows(self, names: Iterable[str]) -> list[tuple[str, bytes, tuple[int, int]]]:
        return [row for row in map(self._row, names) if row is not None]

    def _row(self, name: str) -> tuple[str, bytes, tuple[int, int]] | None:
        path = self.store.path_of(name)
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                row = body_of(file.read()).split(b"\n", 1)[0]
            if key_of_row(row) != name:
                raise DamagedResultError("it is another result's")
            return name, row, (status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            return None
        except DamagedResultError as damage:
            self.store.notes.append(f"{path}: damaged ({damage}): it does not count")
        except NewerResultError as newer:
            self.store.notes.append(f"{path}: a newer version of buddysim wrote it ({newer}): it does not count")
        return None

    def _write(self, schema: Any, tables: Iterable[Any]) -> None:
        import pyarrow.parquet as parquet

        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / f"{os.getpid()}-{secrets.token_hex(8)}.unfinished"
        try:
            with parquet.ParquetWriter(unfinished, schema, compression="zstd") as writer:
                for table in tables:
                    writer.write_table(table)
            remove_abandoned(self.folder.glob("*.unfinished"), unfinished.stat().st_mtime)
            unfinished.rename(unfinished.with_suffix(".parquet"))
        finally:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
