"""A stored result: a head with its checksum, then two lines of JSON, compressed.

The first line is the row that tables show: flat, text and numbers only. The second is everything. The head says the
format, the SHA-256 of what follows, and its length: a file that was cut, or changed, is found out.
"""

from __future__ import annotations

import hashlib
import json
import platform
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import zstandard

from buddysim.base.errors import BuddysimError
from buddysim.base.parsers.json_text import loads
from buddysim.base.parsers.zstd import BEST_RATIO, decompressed, frame_bytes
from buddysim.base.saved_results import check_result, check_row
from buddysim.sweep.engine_protocol import StorableResult
from buddysim.sweep.point import SweepPoint, key_of
from buddysim.sweep.stored_finding import check_finding

FORMAT = 1
_MAGIC = b"buddysim-result"
_LARGEST = 2**31
_LEVEL = 3
_PACKED = "it can't be decompressed"
#: What the identity and the row both say.
_NAMED_TWICE = ("engine", "model_version")
#: The counter of time that each row of an engine has.
_TIMES = {"replay": "time_ps", "training": "time_ms"}

Row = dict[str, Any]


class DamagedResultError(Exception):
    """Bytes that are no whole record."""


class NewerResultError(Exception):
    """A record of a format that this version doesn't know."""


@dataclass(frozen=True)
class StoredResult:
    """A result, what it is of, and what was measured while it was made.

    Attributes
    ----------
    key : of the result in a store
    identity : what determines it
    row : its row of tables, columns by name
    result : what `StorableResult.to_dict` gives: what `run --json` and `train --json` write for a scheme
    measured : what differs from run to run: seconds, peak_rss_bytes, computer, python, finished, sources
    """

    key: str
    identity: dict[str, str]
    row: Row
    result: dict[str, Any]
    measured: dict[str, Any]

    @property
    def engine(self) -> str:
        """Name of its engine."""
        return self.identity["engine"]

    @property
    def model_version(self) -> int:
        """Model version of the engine that made it."""
        return int(self.identity["model_version"])

    def to_bytes(self) -> bytes:
        """The file."""
        body = _json(self.row) + b"\n" + _json({**vars(self), "row": None}) + b"\n"
        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(body)
        head = f"{FORMAT} {hashlib.sha256(packed).hexdigest()} {len(packed)}"
        return b"%b %b\n%b" % (_MAGIC, head.encode(), packed)


def make_record(point: SweepPoint, result: StorableResult, seconds: float, peak_rss_bytes: int) -> StoredResult:
    """The record of a result.

    Parameters
    ----------
    seconds : of `simulate`, wall-clock time
    peak_rss_bytes : of the process
    """
    stable = result.to_dict()
    measured = {
        "seconds": seconds,
        "peak_rss_bytes": peak_rss_bytes,
        "computer": socket.gethostname(),
        "python": platform.python_version(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "sources": sources_checksum(point.engine),
    }
    baseline = point.baseline
    row: Row = {
        "key": point.key,
        "engine": point.engine,
        "model_version": int(point.identity["model_version"]),
        "settings_hash": point.settings_hash,
        "baseline": None if baseline is None else baseline.key,
        "machine_checksum": point.identity["machine"],
        "content": point.identity[point.sweep_engine.SUBJECT],
        "seconds": seconds,
        "peak_rss_bytes": peak_rss_bytes,
        "sources": measured["sources"],
    }
    row |= point.sweep_engine.columns(point.settings)
    row |= point.sweep_engine.result_columns(point.settings, stable)
    row |= {key: value for key, value in stable.items() if key not in row and isinstance(value, int | float | str)}
    row = {key: value for key, value in row.items() if value is not None}
    return StoredResult(point.key, point.identity, row, stable, measured)


def read_record(content: bytes, key: str) -> StoredResult:
    """The record of a file's bytes.

    Raises
    ------
    Damaged
        where they are cut, changed, or another result's
    Newer
        where a newer version wrote them
    """
    row, rest = [*body_of(content).split(b"\n"), b""][:2]
    others = _json_of(rest, "its content is no result")
    if not isinstance(others, dict) or others.keys() | {"row"} != {one.name for one in fields(StoredResult)}:
        raise DamagedResultError("its content is no result")
    record = StoredResult(**{**others, "row": row_of(row)})
    parts = (record.identity, record.result, record.measured)
    if not all(isinstance(part, dict) for part in parts) or not all(
        isinstance(text, str) for text in record.identity.values()
    ):
        raise DamagedResultError("its content is no result")
    if record.key != key or key_of(record.identity) != key:
        raise DamagedResultError(f"it is the result {record.key}, not {key}")
    _check_values(record)
    return record


def _check_values(record: StoredResult) -> None:
    """Refuse a record that is not of one result, or whose values are not what their definitions say."""
    if [record.identity.get(name) for name in _NAMED_TWICE] != [str(record.row[name]) for name in _NAMED_TWICE]:
        raise DamagedResultError("its row is of another result")
    try:
        check_row(record.row, "its row")
        if record.engine == "analysis":
            check_finding(record.result, "its content")
        else:
            check_result(record.result, "its content")
    except BuddysimError as error:
        raise DamagedResultError(str(error)) from None
    time = _TIMES.get(record.engine)
    if time is not None and time not in record.row:
        raise DamagedResultError(f"its row: {time} is missing")


def body_of(content: bytes) -> bytes:
    """The two lines of a file, its checksum checked; raises as `read_record`."""
    head, newline, packed = content.partition(b"\n")
    words = head.split(b" ")
    if not newline or words[0] != _MAGIC or len(words) < 2 or not words[1].isdigit():
        raise DamagedResultError("not a stored result" if content else "empty")
    if int(words[1]) > FORMAT:
        raise NewerResultError(f"format {int(words[1])}, and this version knows up to {FORMAT}")
    if int(words[1]) < 1:
        raise DamagedResultError("format 0: the first is 1")
    if len(words) != 4 or not words[3].isdigit() or len(packed) != int(words[3]):
        raise DamagedResultError(f"cut: {len(packed)} bytes of it are there")
    if hashlib.sha256(packed).hexdigest().encode() != words[2]:
        raise DamagedResultError("its checksum is wrong")
    try:
        if not 0 <= frame_bytes(packed, _PACKED) <= min(_LARGEST, BEST_RATIO * len(packed)):
            raise DamagedResultError(f"{_PACKED}: it states more than it can hold")
        return decompressed(packed, _PACKED)
    except BuddysimError as error:
        raise DamagedResultError(str(error)) from None


def row_of(line: bytes) -> Row:
    """The row in the first line of a file; raises `DamagedResultError` where it is none."""
    row: Row = _json_of(line, "its row is no JSON")
    if b"\\u" in line or not line.isascii():
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # halves of characters are no text
            raise DamagedResultError("its row is no JSON") from None
    flat = isinstance(row, dict) and all(isinstance(value, str | int | float | None) for value in row.values())
    if not flat or [type(row.get(key)) for key in ("key", "engine", "model_version")] != [str, str, int]:
        raise DamagedResultError("its row is none of a result")
    return row


def _json_of(line: bytes, problem: str) -> Any:
    try:
        return loads(line, problem)
    except BuddysimError:
        raise DamagedResultError(problem) from None


def key_of_row(row: bytes) -> str:
    """The key in the first line of a file; raises `DamagedResultError` where it has none."""
    return str(row_of(row)["key"])


def _json(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")  # bytes of a file name that are no text: JSON's escapes


#: The folders of the package whose sources decide what an engine computes.
_FOLDERS = {
    "analysis": ("analyses", "base", "compress", "machine", "trace", "buddy", "replay"),
    "replay": ("base", "compress", "machine", "trace", "buddy", "replay"),
    "training": ("base", "compress", "formats", "machine", "training"),
}
_SUFFIXES = (".py", ".pyx", ".pxd", ".h", ".toml", ".csv", ".maps")


@cache
def sources_checksum(engine: str) -> str:
    """SHA-256 over the sources of an engine, in hex: tells an edited engine's results from the released one's."""
    package = Path(sys.modules["buddysim"].__file__ or "").parent
    digest = hashlib.sha256()
    for folder in _FOLDERS[engine]:
        for path in sorted((package / folder).rglob("*")):
            if path.suffix in _SUFFIXES:
                digest.update(path.relative_to(package).as_posix().encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
