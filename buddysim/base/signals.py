"""Signals that end a command: they unwind it like an error, so that no unfinished file is left."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

#: Signals that end a process unless caught, without Ctrl-C (Python's own) and errors of the process itself.
ENDING = tuple(
    getattr(signal, name)
    for name in (
        *("SIGHUP", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF"),
        *("SIGXCPU", "SIGIO", "SIGPWR", "SIGSTKFLT"),
    )
    if hasattr(signal, name)
)


class Stopped(BaseException):
    """A signal asks the process to end.

    Attributes
    ----------
    number : of the signal
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """Within the block, signals that end the process raise `Stopped`; one that is ignored stays ignored.

    Outside of the main thread, where Python doesn't let signals be handled, nothing changes.
    """
    before = {}

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    try:
        with contextlib.suppress(ValueError):
            for number in ENDING:
                if signal.getsignal(number) == signal.SIG_DFL:
                    before[number] = signal.signal(number, stop)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def block() -> None:
    """Defer signals from here on: the next one must not interrupt the clean-up."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, *ENDING))
