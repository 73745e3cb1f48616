"""A kernel's trace file, grouped (.traceg) or raw (.trace), plain or xz, read piece by piece."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_input
from buddysim.base.parsers.streams import UnpackedFile
from buddysim.importers.accelsim.header import KernelHeader, parse_header
from buddysim.importers.accelsim.image import MemoryImage
from buddysim.importers.accelsim.opcodes import Opcode, classify, timing_of
from buddysim.importers.accelsim.parser import KernelParser
from buddysim.importers.accelsim.raw_lines import index_lines

Records = tuple[
    npt.NDArray[np.void], npt.NDArray[np.void], npt.NDArray[np.void], npt.NDArray[np.uint64], npt.NDArray[np.uint64]
]

_READ_BYTES = 1 << 20
_MAX_HEADER_BYTES = 1 << 16
_FIRST_OF_16_BYTES, _INSTRUCTION_BYTES, _MAX_CODE_BYTES = 70, 16, (1 << 32) - 16
_RAW_LINES_AT_ONCE = 1 << 16


class KernelTrace:
    """One kernel's file.

    Parameters
    ----------
    path : of the file
    include_local : include operations on local memory
    image : memory contents that receive stored values; None: not recorded

    Attributes
    ----------
    code_bytes : code size up to the last executed instruction, known after `records`; 0 before Volta
    """

    def __init__(self, path: Path, *, include_local: bool = False, image: MemoryImage | None = None) -> None:
        self.path = path
        names = path.name.removesuffix(".xz")
        self.is_xz = path.name.endswith(".xz")
        self.is_raw = not names.endswith("g")
        self.counts: dict[str, int] = {}
        self.unknown_opcodes: set[str] = set()
        self.code_bytes = 0
        self._include_local, self._image = include_local, image
        self._file = self._open()
        try:
            self.header, self._first, self._lines_before = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> UnpackedFile:
        file = open_input(self.path, "kernel's trace")
        if not os.fstat(file.fileno()).st_size:
            file.close()
            raise BuddysimError(f"{self.path}: the file is empty: expected a kernel's trace")
        return UnpackedFile(file, str(self.path), "xz" if self.is_xz else "")

    def _read(self, n: int) -> bytes:
        return self._file.read(n)

    def _read_header(self) -> tuple[KernelHeader, bytes, int]:
        """Read the header; return it, the text read beyond it, and the number of lines before that text."""
        text = b""
        while True:
            text_part = self._read(_READ_BYTES)
            text += text_part
            end = 0 if text.startswith(b"#") else text.find(b"\n#") + 1
            if end or text.startswith(b"#") or not text_part:
                break
            if len(text) > _MAX_HEADER_BYTES:
                raise BuddysimError(f"{self.path}: no header in the first {len(text)} bytes: expected '-key = value'")
        if not end and not text.startswith(b"#"):
            end = len(text)
        if end > _MAX_HEADER_BYTES:
            raise BuddysimError(f"{self.path}: a header of {end} bytes: expected '-key = value' lines and '#'")
        lines = text[:end].decode("utf-8", "replace").split("\n")
        return parse_header(str(self.path), lines), text[end:], len(lines) - 1

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> KernelTrace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def records(self) -> Iterator[Records]:
        """Yield blocks, warps, ops, lines and program counters, several whole thread blocks at a time; only once."""
        timing = timing_of(self.header.binary_version)

        def look_up(text: str) -> Opcode:
            return classify(text, timing)

        yield from self._raw(look_up) if self.is_raw else self._grouped(look_up)

    def _parser(self, look_up: Callable[[str], Opcode]) -> KernelParser:
        return KernelParser(
            str(self.path),
            self.header,
            look_up,
            first_line=self._lines_before,
            include_local=self._include_local,
            image=self._image,
        )

    def _finish(self, parser: KernelParser) -> None:
        self.counts, self.unknown_opcodes = parser.counts, parser.unknown_opcodes
        if self.header.binary_version >= _FIRST_OF_16_BYTES:
            self.code_bytes = min(parser.last_pc + _INSTRUCTION_BYTES, _MAX_CODE_BYTES)

    def _grouped(self, look_up: Callable[[str], Opcode]) -> Iterator[Records]:
        parser = self._parser(look_up)
        text_part = self._first
        while text_part:
            parser.feed(text_part)
            yield parser.pop_records()
            text_part = self._read(_READ_BYTES)
        parser.finish()
        yield parser.pop_records()
        self._finish(parser)

    def _raw(self, look_up: Callable[[str], Opcode]) -> Iterator[Records]:
        """Yield the records of a raw trace, after a sort by block and warp that needs 24 B per instruction."""
        with tempfile.TemporaryFile() as spill:
            spill.write(self._first)
            while text_part := self._read(_READ_BYTES):
                spill.write(text_part)
            spill.flush()
            if spill.tell() == 0:
                return
            with mmap.mmap(spill.fileno(), 0, access=mmap.ACCESS_READ) as text:
                prefix = self._prefix_fields(text)
                offsets, keys, numbers = index_lines(str(self.path), text, self.header, self._lines_before)
                order = np.argsort(keys, kind="stable")
                parser = self._parser(look_up)
                for first in range(0, len(order), _RAW_LINES_AT_ONCE):
                    batch_lines = order[first : first + _RAW_LINES_AT_ONCE]
                    parser.feed_lines(text, prefix, offsets[batch_lines], keys[batch_lines], numbers[batch_lines])
                    yield parser.pop_records()
                parser.end_lines()
                yield parser.pop_records()
                self._finish(parser)

    def _prefix_fields(self, text: mmap.mmap) -> int:
        """Return the number of fields before an instruction's own: block, warp, and core or cluster if printed.

        The active mask is the first field of exactly eight hexadecimal digits that has a program counter before it.
        """
        at = 0
        while at < len(text):
            end = text.find(b"\n", at)
            end = len(text) if end < 0 else end
            fields = text[at : min(end, at + 4096)].split()
            at = end + 1
            if not fields or fields[0].startswith(b"#"):
                continue
            own = 1 + self.header.line_info
            for prefix in (4, 6, 11, 13):
                mask = fields[prefix + own] if len(fields) > prefix + own else b""
                if len(mask) == 8 and all(digit in b"0123456789abcdefABCDEF" for digit in mask):
                    return prefix
            raise BuddysimError(f"{self.path}: {fields[0][:20]!r}...: expected x y z warp PC mask and an instruction")
        return 4
