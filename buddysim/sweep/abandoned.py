"""Unfinished files that killed processes left, of any computer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

#: An unfinished file that has not changed for this long is of a process that was killed: a write takes seconds.
_ABANDONED_S = 3600.0


def remove_abandoned(files: Iterable[Path], now_s: float) -> None:
    """Remove those of some unfinished files that no process writes any more.

    Parameters
    ----------
    now_s : by the clock of their file system
    """
    for path in files:
        with contextlib.suppress(OSError):  # another process removes it, too
            if now_s - path.stat().st_mtime > _ABANDONED_S:
                path.unlink()
