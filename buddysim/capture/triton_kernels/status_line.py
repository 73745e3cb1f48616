"""Progress of a capture in the last line of a terminal, erased while the script itself runs."""

from __future__ import annotations

import sys
import time
from typing import Final

_EVERY_S: Final = 0.2
_MAX_CHARACTERS: Final = 78


class StatusLine:
    """A line of standard error; nothing is shown where that is no terminal."""

    def __init__(self) -> None:
        self._shown = False
        self._last = 0.0

    def show(self, text: str) -> None:
        """Show a text, unless another one was shown less than 0.2 s ago."""
        now = time.monotonic()
        if now - self._last < _EVERY_S or sys.stderr is None or not sys.stderr.isatty():
            return
        self._last, self._shown = now, True
        sys.stderr.write(f"\r\x1b[K{text[:_MAX_CHARACTERS]}")
        sys.stderr.flush()

    def erase(self) -> None:
        """Erase the line."""
        if self._shown:
            self._shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
