"""Bytes of an activations file: header, heads of sections, heads of values."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from buddysim.base.errors import BuddysimError

MAGIC = b"\x8fMAPS\x01\r\n"
FORMAT_VERSION = 1

HEADER = struct.Struct("<8sIIII")
SECTION = struct.Struct("<4sIQII")
VALUES_HEAD = struct.Struct("<IIIBBH")
PROVENANCE, MAPS, POINT, VALUES, END = b"PROV", b"MAPS", b"PONT", b"VALU", b"DONE"
LONGEST_PAYLOAD = 2**31
LONGEST_TEXT = 64 * 2**20
DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<f4"), 2: np.dtype("<f2"), 3: np.dtype("u1")}


class ActivationsError(BuddysimError):
    """Error of an activations file that cannot be read: file, section, offset and expectation."""

    def __init__(self, path: str | os.PathLike[str], section: str, offset: int, problem: str) -> None:
        super().__init__(f"{os.fspath(path)}: {section} at offset {offset}: {problem}")


def decompressed(path: Path, where: str, at: int, frame: bytes, expected: int | None) -> bytes:
    """Decompress a zstd frame that states the size of its contents.

    Parameters
    ----------
    where, at : the section and its offset, for errors
    expected : size in bytes that the frame must state; None: a text of any size up to `LONGEST_TEXT`

    Raises
    ------
    ActivationsError
        if the frame states another size, or cannot be decompressed
    """
    try:
        size = zstandard.frame_content_size(frame)
        max_bytes = LONGEST_TEXT if expected is None else expected
        if (
            not 0 <= size <= max_bytes
            or (expected is not None and size != expected)
            or size > 2**15 * max(len(frame), 1)
        ):
            expectation = f"at most {max_bytes}" if expected is None else str(expected)
            raise ActivationsError(path, where, at, f"{size} bytes when decompressed: expected {expectation}")
        return zstandard.ZstdDecompressor().decompress(frame)
    except zstandard.ZstdError as error:
        raise ActivationsError(path, where, at, f"can't be decompressed: {error}") from None
