"""The index of a store: a cache that is rebuilt from the results if it is lost, damaged or outdated."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from buddysim.base.parsers.arrow import read_parquet
from buddysim.sweep import index
from buddysim.sweep.index import Index
from buddysim.sweep.store import Store
from buddysim.sweep.stored_result import StoredResult
from tests.sweep.conftest import named

pa = pytest.importorskip("pyarrow", reason="needs pip install 'buddysim[sweep]'")


@pytest.fixture
def files(store: Store, small_record: StoredResult) -> list[Path]:
    """Return the index files of a store with three results."""
    for number in range(3):
        store.put(named(small_record, number))
    return [Path(file) for file in Index(store).refresh().files()]


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def of_other_columns(file: Path) -> None:
    import pyarrow.parquet as parquet

    parquet.write_table(pa.table({"name": ["of another program"]}), file)


@pytest.mark.parametrize("harm", [Path.unlink, emptied, cut, of_other_columns])
def test_a_damaged_index_is_made_anew(store: Store, files: list[Path], harm: object) -> None:
    assert callable(harm)
    before = Index(store).refresh().all_keys()
    for file in files:
        harm(file)
    again = Index(store).refresh()
    assert again.all_keys() == before == store.all_keys()
    assert store.notes == []


def test_what_is_known_is_not_read_again(store: Store, files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Index, name: str) -> None:
        raise AssertionError(f"{name} was read")

    monkeypatch.setattr(Index, "_row", refuse)
    assert Index(store).refresh().all_keys() == store.all_keys()
    assert [Path(file) for file in Index(store).refresh().files()] == files


def test_many_files_become_one_a_file_at_a_time(
    store: Store, small_record: StoredResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of 300 kB and more, of which half have a column that the others lack."""
    monkeypatch.setattr(index, "_ROWS_PER_FILE", 1)
    monkeypatch.setattr(index, "_MAX_FILES", 4)
    for number in range(100, 130):
        record = named(small_record, number)
        extra = {"remark": str(number) * 10**5} if number % 2 else {"note": str(number) * 10**5}
        store.put(dataclasses.replace(record, row={**record.row, **extra}))
    assert len(Index(store).refresh().files()) == 30
    held: list[int] = []

    def read(*arguments: object) -> object:
        held.append(pa.total_allocated_bytes())
        return read_parquet(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(index, "read_parquet", read)
    (file,) = Index(store).refresh().files()
    assert max(held) - held[0] < 3 * 10**6
    table = read_parquet(file, file)
    assert set(table.column("key").to_pylist()) == store.all_keys()
    assert len(table) == 30
    assert table.column("note").null_count == table.column("remark").null_count == 15
    assert Index(store).refresh().files() == [file]


def test_a_result_that_changes_in_place_is_read_again(store: Store, files: list[Path]) -> None:
    name = min(store.all_keys())
    store.path_of(name).write_bytes(store.path_of(name).read_bytes()[:-1])
    assert Index(store).refresh().all_keys() == store.all_keys() - {name}
    assert "damaged" in store.notes[0]


def test_what_a_killed_process_left_goes_at_the_next_write(store: Store, small_record: StoredResult) -> None:
    index = Index(store)
    old, new = index.folder / "1-x.unfinished", index.folder / "2-y.unfinished"
    for left in (old, new):
        left.write_bytes(b"PAR1")
    os.utime(old, (1, 1))
    store.put(small_record)
    assert index.refresh().all_keys() == {small_record.key}
    assert [*index.folder.glob("*.unfinished")] == [new]  # of a process that may write
