"""The captured program as a child process: the socket for its reports, and the signals passed on to it."""

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
_LONGEST_NAMES = 40  # names of the folder and of the socket in it


@contextlib.contextmanager
def reporting_socket(name: str, backlog: int) -> Iterator[tuple[socket.socket, Path]]:
    """Open a socket called `name` in a temporary folder of its own; both are removed afterwards."""
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
    """Pass SIGTERM and SIGHUP on to the program, which gets Ctrl-C by itself; the capture ends with it.

    Outside of the main thread, signals are not changed.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, lambda received, frame: process.send_signal(received))
        yield
    finally:
        with contextlib.suppress(ValueError):
            for number, handler in before.items():
                signal.signal(number, handler)
