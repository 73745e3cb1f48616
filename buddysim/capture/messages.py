"""The end of a captured program: as text, and as an exit code."""

from __future__ import annotations

import signal


def signal_text(returncode: int) -> str:
    """Return the signal that ended a process, by its negative return code: ``"signal 9 (SIGKILL)"``."""
    number = -returncode
    name = signal.Signals(number).name if number in set(signal.Signals) else "unknown"
    return f"signal {number} ({name})"


def exit_code(returncode: int) -> int:
    """Return the exit code that passes on a process's end, as shells do: 128 + the number of the signal."""
    return returncode if returncode >= 0 else 128 - returncode
