"""Reads every result of a store and checks it: the index trusts a file of unchanged size and time, this does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from buddysim.base.errors import BuddysimError
from buddysim.sweep.compaction import RECORD, read_part
from buddysim.sweep.store import Store
from buddysim.sweep.stored_result import DamagedResultError, NewerResultError, read_record


@dataclass
class Verification:
    """What a store's files hold.

    Attributes
    ----------
    n_whole, n_newer : results that are whole, and those of a newer version, which can't be checked
    damaged : reason for each damaged file or result
    """

    n_whole: int = 0
    n_newer: int = 0
    damaged: dict[str, str] = field(default_factory=dict)


def verify(store: Store) -> Verification:
    """Read every byte of every result, single or in a part, and compare checksums, names and contents."""
    result, whole = Verification(), set[str]()
    for where, key, content in _contents(store, result):
        try:
            read_record(content, key)
            whole.add(key)  # a compacted one may have its single file, too
        except DamagedResultError as damage:
            result.damaged[where] = str(damage)
        except NewerResultError:
            result.n_newer += 1
    result.n_whole = len(whole)
    return result


def _contents(store: Store, result: Verification) -> Iterator[tuple[str, str, bytes]]:
    """Give path, key and bytes of each result; a part that can't be read is damaged as a whole."""
    for key in sorted(store.singles()):
        path = store.path_of(key)
        try:
            yield str(path), key, path.read_bytes()
        except FileNotFoundError:  # compaction has removed it
            continue
        except OSError as error:
            result.damaged[str(path)] = error.strerror or str(error)
    for path in sorted(store.parts.glob("*.parquet")):
        try:
            part = read_part(path, {"key": str, RECORD: bytes})
        except BuddysimError as error:
            result.damaged[str(path)] = str(error).removeprefix(f"{path}: damaged: ")
            continue
        for key, content in zip(part["key"], part[RECORD], strict=True):
            yield f"{path}: result {key}", key, content
