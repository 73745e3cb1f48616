"""The store: complete results or none, despite failures of files, processes, disks and network caches."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.sweep.store import Store
from buddysim.sweep.stored_result import DamagedResultError, StoredResult, row_of
from tests.sweep.conftest import named


def test_what_was_written_is_read(store: Store, small_record: StoredResult) -> None:
    assert store.get(small_record.key) is None
    size = store.put(small_record)
    assert store.get(small_record.key) == small_record
    assert store.all_keys() == {small_record.key}
    path = store.path_of(small_record.key)
    assert path.stat().st_size == size
    assert path.parent.name == small_record.key[:2]
    assert list(store.unfinished.iterdir()) == []


def test_a_store_is_where_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Store.at().folder == tmp_path / "out" / "store"
    monkeypatch.setenv("BUDDYSIM_STORE", str(tmp_path / "mine"))
    assert Store.at().folder == tmp_path / "mine"
    assert Store.at("other").folder == tmp_path / "other"
    assert not (tmp_path / "out").exists()  # looking makes nothing


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_no_result_and_is_said(store: Store, small_record: StoredResult, data: Any) -> None:
    store.put(small_record)
    path = store.path_of(small_record.key)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), "cut"):
        content = content[: data.draw(st.integers(0, len(content) - 1), "at")]
    else:
        at = data.draw(st.integers(0, len(content) - 1), "at")
        content[at] ^= 1 << data.draw(st.integers(0, 7), "bit")
    path.write_bytes(content)
    store.notes.clear()
    try:
        assert store.get(small_record.key) is None
        assert "damaged" in store.notes[0]
        assert store.verified([small_record.key]) == set()
    except BuddysimError as error:  # the flipped bit made it one of a newer format
        assert "a newer version" in str(error)
    store.put(small_record)
    assert store.get(small_record.key) == small_record
    assert store.verified([small_record.key]) == {small_record.key}


def test_a_format_that_never_was_is_damage(store: Store, small_record: StoredResult) -> None:
    """The head states the format; the checksum covers what follows it."""
    store.put(small_record)
    path = store.path_of(small_record.key)
    path.write_bytes(path.read_bytes().replace(b"buddysim-result 1 ", b"buddysim-result 0 "))
    assert store.get(small_record.key) is None
    assert "damaged" in store.notes[0]


@pytest.mark.parametrize("half", [b"\\ud800", b"\\uDFFF", b"\xed\xa0\x80"])
def test_half_a_character_in_a_row_is_damage(half: bytes) -> None:
    with pytest.raises(DamagedResultError, match="its row is no JSON"):
        row_of(b'{"engine":"replay","key":"%b","model_version":1}' % half)


def test_a_row_without_escapes_is_not_written_again_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """That took most of the time of an index."""
    row = {"engine": "replay", "key": "a", "model_version": 1}
    line = json.dumps(row).encode()
    monkeypatch.setattr(json, "dumps", None)
    assert row_of(line) == row


def test_a_newer_or_strange_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "STORE").write_text("buddysim store 99\n")
    with pytest.raises(BuddysimError, match="a newer version of buddysim made"):
        Store.at(tmp_path)
    (tmp_path / "STORE").write_text("something\n")
    with pytest.raises(BuddysimError, match="not a store of results"):
        Store.at(tmp_path)
    with pytest.raises(BuddysimError, match="not a folder"):
        Store.at(tmp_path / "STORE")


def test_an_unwritable_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BuddysimError, match="can't be written"):
        Store(tmp_path / "file" / "store").check_writable()


def test_many_writers_of_the_same_points_leave_each_once(store: Store, small_record: StoredResult) -> None:
    records = [named(small_record, number) for number in range(30)]
    threads = [threading.Thread(target=lambda: [Store(store.folder).put(r) for r in records]) for _ in range(4)]
    for thread in threads:
        thread.start()
    seen: set[str] = set()
    while any(thread.is_alive() for thread in threads):
        for name in Store(store.folder).all_keys():
            assert store.get(name) is not None  # never half a file
            seen.add(name)
    for thread in threads:
        thread.join()
    assert store.all_keys() == {record.key for record in records}
    assert store.notes == []
    assert list(store.unfinished.iterdir()) == []


@pytest.mark.parametrize("passing", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_waited_for(
    store: Store, small_record: StoredResult, passing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, said, write = [3], [], Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if left[0]:
            left[0] -= 1
            write(path, content[:20])  # what a full disk leaves
            raise OSError(passing, os.strerror(passing))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    store.put(small_record, waiting=said.append)
    assert store.get(small_record.key) == small_record
    assert len(said) == 3
    assert list(store.unfinished.iterdir()) == []
    left[0] = 1000
    with pytest.raises(BuddysimError, match=os.strerror(passing)):
        store.put(named(small_record, 1), timeout_s=0.2)
    assert list(store.unfinished.iterdir()) == []


def test_a_file_that_may_not_grow_is_a_full_disk(store: Store, small_record: StoredResult) -> None:
    """The kernel limits the size of files in a separate process."""
    code = (
        "import resource, signal, sys\nfrom pathlib import Path\n"
        "from buddysim.sweep.store import Store\nfrom buddysim.sweep.stored_result import read_record\n"
        "record = read_record(Path(sys.argv[2]).read_bytes(), Path(sys.argv[2]).name)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, -1))\n"
        "def grow(text):\n    print(text)\n    resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))\n"
        "Store(Path(sys.argv[1])).put(record, waiting=grow)"
    )
    store.put(small_record)
    other = store.folder.parent / "other"
    command = [sys.executable, "-c", code, str(other), str(store.path_of(small_record.key))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "File too large" in done.stdout
    assert Store.at(other).get(small_record.key) == small_record


# -- another computer's cache: files are seen late ---------------------------------------------------------------------


class Late(Store):
    """Return a store behind a cache that shows an earlier state, as network file systems do."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.seen: set[str] = set()

    def look(self) -> None:
        """Update the cache."""
        self.seen = set(Store(self.folder).all_keys())

    def all_keys(self) -> set[str]:
        return super().all_keys() & self.seen

    def singles(self) -> dict[str, tuple[int, int]]:
        return {name: stamp for name, stamp in super().singles().items() if name in self.seen}

    def get(self, name: str) -> StoredResult | None:
        return super().get(name) if name in self.seen else None


def test_what_is_seen_late_is_simulated_twice_and_neither_lost_nor_damaged(
    store: Store, small_record: StoredResult
) -> None:
    records, computers = [named(small_record, number) for number in range(12)], [Late(store.folder), Late(store.folder)]
    simulated = 0
    for number, record in enumerate(records):
        for computer in computers:
            if computer.get(record.key) is None:
                computer.put(record)
                simulated += 1
        if number % 5 == 4:
            computers[number % 2].look()
    assert simulated > len(records)  # some of them twice
    assert store.all_keys() == {record.key for record in records}
    assert all(store.get(record.key) == record for record in records)
    assert store.notes == []


def test_what_killed_processes_left_goes_when_a_sweep_begins(store: Store, small_record: StoredResult) -> None:
    store.put(small_record)
    old, new = store.unfinished / "a-1-x", store.unfinished / "b-2-y"
    for path in (old, new):
        path.touch()
    os.utime(old, (1, 1))
    store.check_writable()
    assert [*store.unfinished.iterdir()] == [new]


def test_a_result_is_on_the_disk_before_it_has_its_name(
    store: Store, small_record: StoredResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[bool] = []
    path = store.path_of(small_record.key)
    monkeypatch.setattr("buddysim.sweep.store.flush_to_disk", lambda part: flushed.append(path.exists()))
    store.put(small_record)
    assert flushed == [False]
    assert path.exists()
