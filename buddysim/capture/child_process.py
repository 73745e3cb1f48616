"""What running a program to capture it takes, whatever is captured: a socket to hear it on, signals handed on."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

_LONGEST_SOCKET_PATH = 107
_LONGEST_NAMES = 40  # of the folder made here and the socket in it


@contextlib.contextmanager
def listening(name: str, backlog: int) -> Iterator[tuple[socket.socket, Path]]:
    """A socket called `name` in a folder of its own; both are gone afterwards."""
    base = tempfile.gettempdir()
    short = len(base) < _LONGEST_SOCKET_PATH - _LONGEST_NAMES
    folder = Path(tempfile.mkdtemp(prefix="buddysim-", dir=base if short else "/tmp"))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(folder / name))
        listener.listen(backlog)
        yield listener, folder
    finally:
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def signals_to(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C reaches the program by itself; a termination is handed on. The capture ends when the program does."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda received, frame: process.send_signal(received))
        yield
    except ValueError:  # not in the main thread: signals are someone else's
        yield
    finally:
        with contextlib.suppress(ValueError):
            for number, handler in before.items():
                signal.signal(number, handler)
