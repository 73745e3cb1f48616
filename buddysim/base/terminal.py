"""Foreign text on a terminal: one line that fits, without characters that move the cursor or reverse the text."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any, TextIO

LONGEST_LINE = 600
"""Characters of an error or a warning, beyond which its middle is left out."""

_CUT = " ... "


def one_line(text: str, most: int = LONGEST_LINE) -> str:
    """Return a text as one line that is safe to print, of at most `most` characters.

    Blanks and line ends become single blanks. Control characters, marks of writing direction and bytes that are no
    text appear as escapes, such as ``\\x1b`` and ``\\u202e``.
    """
    if len(text) > 4 * most:  # escapes and blanks are made of a part only
        text = text[: 2 * most] + _CUT + text[-2 * most :]
    shown = "".join(c if c.isprintable() else _escaped(c) for c in " ".join(text.split()))
    if len(shown) <= most:
        return shown
    half = (most - len(_CUT)) // 2
    return shown[:half] + _CUT + shown[-half:]


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that isn't UTF-8 (PEP 383)
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def say(text: str) -> None:
    """Print a line on the standard error; the standard output is for results."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # a full disk, a closed terminal: the exit code says it still
            print(f"buddysim: {one_line(text)}", file=sys.stderr, flush=True)


def drop_unwritten(stream: TextIO | None) -> bool:
    """Say whether a stream is full, or closed by its reader: what it didn't take then goes nowhere.

    Python's last flush would end with another exit code.
    """
    if stream is None:
        return False
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return True
    return False


class _StandardOutput(io.FileIO):
    """Its errors name it, as those of files do."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None


def name_standard_output() -> None:
    """Let errors of this process's standard output name it, however it is buffered."""
    before = sys.stdout
    if not isinstance(before, io.TextIOWrapper):  # it is closed
        return
    before.flush()
    raw = _StandardOutput(before.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw) if isinstance(before.buffer, io.BufferedWriter) else raw,
        before.encoding,
        before.errors,
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )


def warn(text: str) -> None:
    """Print a warning."""
    say(f"warning: {text}")
