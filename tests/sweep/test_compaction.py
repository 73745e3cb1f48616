"""Compaction: many single results as one Parquet file; all of them are readable at any time."""

from __future__ import annotations

from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.sweep import compaction
from buddysim.sweep.store import Store
from buddysim.sweep.stored_result import StoredResult
from buddysim.sweep.verification import verify
from tests.sweep.conftest import named

pytest.importorskip("pyarrow", reason="needs pip install 'buddysim[sweep]'")


def test_compacted_results_are_the_same(store: Store, small_record: StoredResult) -> None:
    records = [named(small_record, number) for number in range(7)]
    for record in records:
        store.put(record)
    assert compaction.compact(store) == (7, 0)
    assert set(store.singles()) == store.all_keys()  # nothing is removed before others can see the part
    assert verify(store).n_whole == 7  # each is there twice
    assert compaction.compact(store, visible_after_s=0.0) == (0, 7)
    assert store.singles() == {}
    assert verify(store).n_whole == 7
    fresh = Store.at(store.folder)
    assert fresh.all_keys() == {record.key for record in records}
    assert all(fresh.get(record.key) == record for record in records)
    assert fresh.verified([record.key for record in records]) == fresh.all_keys()


def test_a_reader_in_the_middle_of_a_compaction_misses_nothing(store: Store, small_record: StoredResult) -> None:
    reader = Store(store.folder)
    for number in range(5):
        store.put(named(small_record, number))
    before = reader.all_keys()
    compaction.compact(store, visible_after_s=0.0)
    assert reader.all_keys() == before
    compaction.compact(store, visible_after_s=0.0)
    assert reader.all_keys() == before
    assert all(reader.get(name) is not None for name in before)


def test_two_compactions_at_once_lose_nothing(store: Store, small_record: StoredResult) -> None:
    records = [named(small_record, number) for number in range(6)]
    for record in records:
        store.put(record)
    other = Store(store.folder)
    compaction.compact(store)
    compaction._write(other, [record.key for record in records[:4]])  # as one that began before did
    compaction.compact(store, visible_after_s=0.0)
    assert other.all_keys() == {record.key for record in records}
    assert all(other.get(record.key) == record for record in records)


def test_damaged_files_stay_out_of_parts(store: Store, small_record: StoredResult) -> None:
    store.put(small_record)
    store.put(named(small_record, 1))
    store.path_of(small_record.key).write_bytes(b"buddysim-result 1")
    assert compaction.compact(store) == (1, 0)
    assert compaction.compact(store, visible_after_s=0.0) == (0, 1)
    assert Store.at(store.folder).get(small_record.key) is None


def test_a_damaged_part_is_said_in_a_line(store: Store, small_record: StoredResult) -> None:
    store.put(small_record)
    compaction.compact(store)
    (part,) = store.parts.iterdir()
    part.write_bytes(part.read_bytes()[:-100])
    with pytest.raises(BuddysimError, match="damaged"):
        Store.at(store.folder).all_keys()


def test_a_table_is_the_same_before_and_after(store: Store, small_record: StoredResult, tmp_path: Path) -> None:
    """What the index notes of files is no column of results."""
    pytest.importorskip("duckdb", reason="needs pip install 'buddysim[sweep]'")
    store.put(small_record)
    tables = []
    for name in ("before", "after"):
        assert main(["results", "--store", str(store.folder), "--all-versions", "-o", f"{tmp_path}/{name}.csv"]) == 0
        tables.append((tmp_path / f"{name}.csv").read_bytes())
        compaction.compact(store)
        compaction.compact(store, visible_after_s=0.0)
        assert not store.singles()
    assert tables[0] == tables[1]
