"""Writing a file of sections: it has its name when it is complete, else nothing or its complete sections are left."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import BinaryIO, NoReturn, Self

from buddysim.base.output import Output
from buddysim.base.sections.section_format import SectionFormat


class SectionWriter:
    """Writer of a file of sections; a context manager.

    Parameters
    ----------
    section_format : of the file
    output : where it goes
    owned : complete the output at the end, or give it up; else the caller does
    flush_each : each section is in the file at once
    """

    def __init__(self, section_format: SectionFormat, output: Output, *, owned: bool, flush_each: bool) -> None:
        self.format, self.output, self.path = section_format, output, output.path
        self._owned, self._flush_each = owned, flush_each
        self._position = 0
        self._file: BinaryIO | None = None
        try:
            self._file = output.part.open("wb", buffering=1 << 20)
        except OSError as error:
            self.abort()
            self._fail("file", f"can't be written: {error.strerror}")
        self._put(section_format.header())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def close(self, *, put: bool = True) -> None:
        """Write what ends the file; `put`: give the file its name."""
        if self._file is None:
            return
        try:
            self._end()
            self._file.close()
            self._file = None
            if self._owned and put:
                self.output.put()
        except OSError as error:
            self.abort()
            self._fail("file", f"can't be written: {error.strerror}")
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Give up: remove what was written, or keep its complete sections, as the `Output` says."""
        if self._file is not None:
            file, self._file = self._file, None
            with contextlib.suppress(OSError):  # a full disk, again
                file.close()
        if self._owned:
            self.output.give_up()

    def _end(self) -> None:
        """Write what ends a complete file."""

    def _section(self, kind: bytes, payload: bytes) -> None:
        self._put(self.format.section(kind, payload))

    def _replace(self, kind: bytes, offset: int, payload: bytes) -> None:
        """Write another payload of the same length over a section's."""
        if self._file is None:
            raise ValueError(f"the {self.format.kind} is closed")
        end = self._position
        self._file.seek(offset)
        self._put(self.format.section(kind, payload))
        self._file.seek(end)
        self._position = end

    def _put(self, data: bytes) -> None:
        if self._file is None:
            raise ValueError(f"the {self.format.kind} is closed")
        try:
            self._file.write(data)
            if self._flush_each:
                self._file.flush()
        except OSError as error:
            self._fail("file", f"can't be written: {error.strerror}")
        self._position += len(data)

    def _fail(self, section: str, problem: str) -> NoReturn:
        raise self.format.error(self.path, section, self._position, problem) from None
