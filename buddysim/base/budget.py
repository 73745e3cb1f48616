"""What an input may cost: one budget, counted in total (docs/reference/untrusted-files.md).

Bytes that a packed file becomes are counted by `Budget`. Memory and processor time of reading are looked at while a
function `within_budget` reads: whatever it calls, they are those of this process.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from buddysim.base.errors import BuddysimError
from buddysim.base.signals import ticking

MEMORY_BYTES = 1 << 30
"""Memory that reading a file may take, where nothing else is stated for its type."""
READING_S = 60
"""Processor time of reading a file."""
OPTION = "--input-budget"
"""Of commands: replaces `MEMORY_BYTES`, for this run."""
_GROWTH = 100
"""Bytes that a byte of a packed file may become, beyond `MEMORY_BYTES`."""
_HELD = 16
"""Bytes of memory for a byte of a file, beyond `MEMORY_BYTES`: objects of Python for numbers of two digits."""
_BYTES_PER_S = 1 << 20
"""Bytes of a file that are read in a second, beyond `READING_S`."""
_LOOK_S = 0.25

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class _Reading:
    """What is read, and what it took when it began.

    Attributes
    ----------
    name : of the file that was opened last
    n_bytes : of all files that were opened
    """

    held: int
    began_s: float
    name: str = "input"
    n_bytes: int = 0

    def check(self) -> None:
        """A BuddysimError where it takes more than its budget."""
        max_s = max(READING_S * max(1, _state.max_bytes / MEMORY_BYTES), self.n_bytes / _BYTES_PER_S)
        if time.process_time() - self.began_s > max_s:
            raise BuddysimError(f"{self.name}: reading it takes more than {max_s:.0f} s of processor time{_HINT}")
        max_held = max(_state.max_bytes, _HELD * self.n_bytes)
        if _held_bytes() - self.held > max_held:
            raise BuddysimError(f"{self.name}: reading it takes more than {max_held} bytes of memory{_HINT}")


@dataclass
class _State:
    """The budget of this process's inputs.

    Attributes
    ----------
    reading : what is read; None: nothing
    """

    max_bytes: int = MEMORY_BYTES
    reading: _Reading | None = None


_state = _State()
_HINT = f" (a file that you trust: {OPTION} SIZE)"


@contextlib.contextmanager
def larger_budget(n_bytes: int | None) -> Iterator[None]:
    """Within the block, an input may take other bytes than `MEMORY_BYTES`, and more time where they are more.

    None changes nothing.
    """
    before, _state.max_bytes = _state.max_bytes, _state.max_bytes if n_bytes is None else n_bytes
    try:
        yield
    finally:
        _state.max_bytes = before


def within_budget(read: Callable[P, T]) -> Callable[P, T]:
    """Return a function that reads a user's files within the budget: the outermost one counts for all that it calls.

    Outside of the main thread, where no signal arrives, nothing is counted: workers read what their command has read.
    """

    @functools.wraps(read)
    def counted(*args: P.args, **kwargs: P.kwargs) -> T:
        if _state.reading is not None or threading.current_thread() is not threading.main_thread():
            return read(*args, **kwargs)
        reading = _state.reading = _Reading(_held_bytes(), time.process_time())
        try:
            with ticking(reading.check, _LOOK_S):
                result = read(*args, **kwargs)
            reading.check()
        finally:
            _state.reading = None
        return result

    return counted


def opened(name: str, n_bytes: int) -> None:
    """Note a file that is opened for reading: what is read may take memory and time in proportion to it."""
    if _state.reading is not None:
        _state.reading.name = name
        _state.reading.n_bytes += n_bytes


def max_unpacked_bytes(packed_bytes: int) -> int:
    """Return how many bytes a file may become when it is unpacked, all its parts together."""
    return max(_GROWTH * packed_bytes, _state.max_bytes)


def _held_bytes() -> int:
    """Memory of this process that is no file's; 0 where the system doesn't say it."""
    with contextlib.suppress(OSError):
        _, resident, of_files, *_ = Path("/proc/self/statm").read_text(encoding="ascii").split()
        return (int(resident) - int(of_files)) * os.sysconf("SC_PAGE_SIZE")
    return 0


class Budget:
    """Bytes that an input has become so far, against the most that it may become.

    Parameters
    ----------
    where : what errors begin with: the file
    most : bytes, at most
    """

    def __init__(self, where: str, most: int) -> None:
        self.where, self.most, self.spent = where, most, 0

    def spend(self, n_bytes: int) -> None:
        """Count further bytes; a BuddysimError where they are more than what is left."""
        self.reach(self.spent + n_bytes)

    def reach(self, n_bytes: int) -> None:
        """Count up to a total; a BuddysimError where it is more than the budget."""
        self.spent = max(self.spent, n_bytes)
        if self.spent > self.most:
            raise BuddysimError(f"{self.where}: becomes more than {self.most} bytes when it is unpacked{_HINT}")
