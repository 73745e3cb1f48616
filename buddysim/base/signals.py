"""Signals that end a command: they unwind it like an error, so that no unfinished file is left.

An exception that a signal raises can hit any line. So it is raised only where that is safe: not below an import, which
would leave a module half made, and not in a block `deferred`, which is for foreign code that an exception breaks. The
signal waits there until the import or the block has ended. After the exit code is decided, signals are ignored.
"""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from buddysim.base.terminal import say

#: Signals that end a process unless caught, without Ctrl-C (Python's own) and errors of the process itself.
ENDING = tuple(
    getattr(signal, name)
    for name in (
        *("SIGHUP", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF"),
        *("SIGXCPU", "SIGIO", "SIGPWR", "SIGSTKFLT"),
    )
    if hasattr(signal, name)
)
EXIT_INTERRUPTED = 128 + signal.SIGINT
#: Signals that a terminal sends to all processes of a command.
_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)

_RETRY_S = 0.02
#: A signal waits no longer than this for an import, or for a block: what hangs there can be interrupted.
_LONGEST_IMPORT_S, _LONGEST_BLOCK_S = 5.0, 60.0
#: After one was raised, others are ignored for this long: Ctrl-C pressed twice must not interrupt the clean-up.
_GRACE_S = 2.0


class Stopped(BaseException):
    """A signal asks the process to end.

    Attributes
    ----------
    number : of the signal
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@dataclass
class _Arrival:
    """The signal that waits, if any.

    Attributes
    ----------
    number : of the signal; 0: none waits
    raised : of the signal whose exception was raised last
    since_s, raised_s : clock at its arrival, and at the last exception
    is_deferred : whether a block `deferred` is under way
    """

    number: int = 0
    raised: int = 0
    since_s: float = 0.0
    raised_s: float = -math.inf
    is_deferred: bool = False


_arrival = _Arrival()


def begin() -> None:
    """Handle signals of this process from here to its end; they wait for `run_to_end`."""
    _handle((signal.SIGINT, *ENDING))
    _arrival.is_deferred = True


def run_to_end(run: Callable[[], int]) -> int:
    """Run a command; return its exit code. A signal that unwinds it decides the code, and one line says so."""
    try:
        with unwinding(), undeferred():
            return run()
    except KeyboardInterrupt:
        ignore()
        say("interrupted; nothing half-written was left")
        return EXIT_INTERRUPTED
    except Stopped as stopped:
        ignore()
        say(f"stopped by {stopped}; nothing half-written was left")
        return 128 + stopped.number


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """After the block, signals are handled as before it: a command that ignored them leaves a program that goes on."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # outside of the main thread none was ignored
            for number, handler in before.items():
                if handler is not None:  # else of foreign code
                    signal.signal(number, handler)


@contextlib.contextmanager
def unwinding(numbers: Iterable[int] = (signal.SIGINT, *ENDING)) -> Iterator[None]:
    """Within the block, signals that end the process raise `Stopped`, Ctrl-C KeyboardInterrupt, where that is safe.

    A signal that is ignored, or handled otherwise, stays so. Outside of the main thread, where Python doesn't let
    signals be handled, nothing changes.
    """
    before = _handle(numbers)
    try:
        yield
    finally:
        if signal.SIGALRM in before:  # else the timer of a signal that waited would end the process
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _handle(numbers: Iterable[int]) -> dict[int, Any]:
    """Handle signals from here on; return the handlers that this replaces."""
    before = {}
    with contextlib.suppress(ValueError):
        for number in numbers:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = signal.signal(number, _arrived)
    return before


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Within the block, signals wait for its end: for code that breaks where an exception hits any of its lines."""
    with unwinding((signal.SIGINT, signal.SIGALRM)), _set_deferred(True):
        yield


@contextlib.contextmanager
def undeferred() -> Iterator[None]:
    """Within a block `deferred`, a block in which signals are raised again."""
    with _set_deferred(False):
        yield


@contextlib.contextmanager
def _set_deferred(is_deferred: bool) -> Iterator[None]:
    before = _arrival.is_deferred
    _arrival.is_deferred = is_deferred
    try:
        if not is_deferred:
            _raise_if_any()
        yield
    finally:
        _arrival.is_deferred = before
    if not before:
        _raise_if_any()


@contextlib.contextmanager
def ticking(look: Callable[[], object], every_s: float) -> Iterator[None]:
    """Within the block, call a function each time that this process has worked so long; its exception ends the block.

    It isn't called where an exception of a signal would wait. Where ``SIGVTALRM`` is the program's own, or where Python
    has no timers (Windows, a browser), it never is.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    number, timer, is_over = signal.SIGVTALRM, signal.ITIMER_VIRTUAL, False

    def arrived(_: int, frame: FrameType | None) -> None:
        if is_over:
            return
        if signal.getitimer(timer)[0]:  # the timer runs on: the signal isn't its own
            signal.signal(number, before)
            signal.raise_signal(number)
            signal.signal(number, arrived)
            return
        signal.setitimer(timer, every_s)
        if not _arrival.is_deferred and not _is_importing(frame):
            look()

    before = signal.getsignal(number)
    if before not in (signal.SIG_DFL, _arrived):
        yield
        return
    signal.signal(number, arrived)
    signal.setitimer(timer, every_s)
    try:
        yield
    finally:
        is_over = True
        signal.setitimer(timer, 0)
        signal.signal(number, before)


def without_terminal() -> contextlib.AbstractContextManager[None]:
    """Threads and processes that start within the block never get the signals of a terminal: they inherit its mask."""
    return _without(_TERMINAL)


def without_signals() -> contextlib.AbstractContextManager[None]:
    """Processes that start within the block get none of the signals that end this one: they inherit its mask."""
    return _without((signal.SIGINT, *ENDING))


@contextlib.contextmanager
def _without(numbers: Iterable[int]) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def again(error: BaseException) -> bool:
    """Raise an exception of a signal once more, soon, where Python had to drop it; return whether it was one."""
    if not isinstance(error, KeyboardInterrupt | Stopped):
        return False
    _arrival.number = error.number if isinstance(error, Stopped) else signal.SIGINT
    _arrival.since_s, _arrival.raised_s = time.monotonic(), -math.inf
    signal.setitimer(signal.ITIMER_REAL, _RETRY_S)
    return True


def raise_lost() -> None:
    """Raise the exception of a signal once more where a library has just made another error of it, as DuckDB does."""
    if time.monotonic() - _arrival.raised_s < _GRACE_S:
        _arrival.number = _arrival.raised
        _raise_if_any()


def ignore() -> None:
    """Ignore signals from here on: the next one must not interrupt the clean-up, nor an earlier one the exit code.

    Python notes a KeyboardInterrupt that leaves code which is run as text, as dataclasses are made, even if it is
    caught later. A module run by ``python -m`` then ends by SIGINT, whatever its exit code (`exit_sigint` of CPython's
    main.c). The next code that is run as text makes Python forget it (`run_eval_code_obj` of pythonrun.c).
    """
    with contextlib.suppress(ValueError):
        for number in (signal.SIGINT, *ENDING):
            signal.signal(number, signal.SIG_IGN)
    exec("")


def _arrived(number: int, frame: FrameType | None) -> None:
    now_s = time.monotonic()
    if now_s - _arrival.raised_s < _GRACE_S:
        return
    if not _arrival.number:
        _arrival.number, _arrival.since_s = number, now_s
    longest_s = _LONGEST_BLOCK_S if _arrival.is_deferred else _LONGEST_IMPORT_S
    waits = (_arrival.is_deferred or _is_importing(frame)) and now_s - _arrival.since_s < longest_s
    if waits and signal.getsignal(signal.SIGALRM) is _arrived:
        signal.setitimer(signal.ITIMER_REAL, _RETRY_S)
        return
    _raise_if_any()


def _raise_if_any() -> None:
    number, _arrival.number = _arrival.number, 0
    if number:
        _arrival.raised, _arrival.raised_s = number, time.monotonic()
        raise KeyboardInterrupt if number == signal.SIGINT else Stopped(number)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
