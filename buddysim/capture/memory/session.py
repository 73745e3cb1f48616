"""One capture: runs the program with the preload library and receives what that sends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import selectors
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from buddysim.base.errors import BuddysimError
from buddysim.capture.child_process import listening, signals_to
from buddysim.capture.memory.record import Record
from buddysim.capture.memory.symbols import Symbols
from buddysim.capture.memory.wire import Connection, Entry, MemoryKind, Message, MessageKind, Truncated
from buddysim.trace.format import PAGE_BYTES

_ADDR_NO_RANDOMIZE: Final = 0x0040000  # personality(2)
_NANOSECONDS: Final = 1_000_000_000


@dataclass(frozen=True)
class Trigger:
    """When snapshots are taken.

    Parameters
    ----------
    interval : the first distance: calls, or nanoseconds of processor time
    calls : whether calls are counted
    function : whose; empty: of every allocating function
    """

    interval: int
    calls: bool = False
    function: str = ""

    def label(self, position: int) -> str:
        if self.calls:
            return f"after {position} calls of {self.function or 'allocating functions'}"
        return f"after {position / _NANOSECONDS:.3f} s of processor time"


@dataclass(frozen=True)
class Request:
    """What is captured (``struct settings`` of preload/capture.h), and the names of the allocations that are wanted."""

    trigger: Trigger
    snapshots: int
    least_bytes: int
    look_at_bytes: int
    seed: int
    match: re.Pattern[str] | None = None


@dataclass
class Outcome:
    """How a run went.

    Parameters
    ----------
    returncode : of the program, negative for a signal
    answered : whether the library was loaded at all
    total : length of the run, where the program sent it at its end
    cut_short, failed : snapshots that didn't arrive whole; that couldn't be taken, with the errors
    replaced : times that the program replaced itself by another one
    own_ns, all_ns : processor time of the program where it sent it at its end, and of it with all its children
    broken : why nothing more could be written, where that happened; the program ran on
    """

    returncode: int = 0
    answered: bool = False
    total: int | None = None
    cut_short: int = 0
    failed: list[str] = field(default_factory=list)
    replaced: int = 0
    own_ns: int | None = None
    all_ns: int = 0
    broken: BuddysimError | None = None


def _without_address_randomization() -> None:
    """Runs in the program's process before it starts: the same addresses in every run, where the system allows it."""
    libc = ctypes.CDLL(None)
    libc.personality(libc.personality(0xFFFFFFFF) | _ADDR_NO_RANDOMIZE)


def _children_ns() -> int:
    """Processor time of the processes that ended below this one, in nanoseconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * _NANOSECONDS)


def _drain(stream: socket.socket) -> None:
    """Takes what the program still sends, which then goes on."""
    with contextlib.suppress(OSError):
        while stream.recv(1 << 20):
            pass


class Session:
    """Runs one program."""

    def __init__(self, record: Record, library: Path, request: Request) -> None:
        self._record, self._library, self._request = record, library, request
        self._symbols = Symbols(str(library))
        self.outcome = Outcome()

    def run(self, command: Sequence[str], program: str) -> Outcome:
        """Run the program to its end."""
        before = _children_ns()
        with listening("memory", backlog=128) as (listener, folder):
            listener.setblocking(False)
            try:
                process = subprocess.Popen(
                    list(command),
                    executable=program,
                    env=self._environment(folder / "memory"),
                    preexec_fn=_without_address_randomization,
                )
            except OSError as error:
                raise BuddysimError(f"{command[0]}: cannot be run: {error.strerror}") from None
            with signals_to(process):
                try:
                    self._listen(listener, process)
                except BaseException:
                    process.kill()
                    process.wait()
                    raise
        self.outcome.returncode = process.returncode
        self.outcome.all_ns = _children_ns() - before
        if not self._request.trigger.calls:
            self.outcome.own_ns = self.outcome.total
        return self.outcome

    def _environment(self, path: Path) -> dict[str, str]:
        request, trigger = self._request, self._request.trigger
        settings = {
            "socket": path,
            "parent": os.getpid(),
            "by_calls": int(trigger.calls),
            "interval": trigger.interval,
            "counted": trigger.function,
            "snapshots": request.snapshots,
            "least": request.least_bytes,
            "whole": request.look_at_bytes,
            "sample": request.look_at_bytes,
            "page": PAGE_BYTES,
            "seed": request.seed,
        }
        others = os.environ.get("LD_PRELOAD")
        return os.environ | {
            "BUDDYSIM_CAPTURE_MEMORY": ";".join(f"{key}={value}" for key, value in settings.items()),
            "LD_PRELOAD": f"{self._library}:{others}" if others else str(self._library),
        }

    def _listen(self, listener: socket.socket, process: subprocess.Popen[bytes]) -> None:
        """Receives messages until the program has ended and all of them have come."""
        ended = os.pidfd_open(process.pid)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(listener, selectors.EVENT_READ)
                selector.register(ended, selectors.EVENT_READ)
                while process.poll() is None:
                    selector.select()
                    self._receive_all(listener)
            self._receive_all(listener)
        finally:
            os.close(ended)

    def _receive_all(self, listener: socket.socket) -> None:
        while True:
            try:
                stream, _ = listener.accept()
            except BlockingIOError:
                return
            with stream:
                stream.setblocking(True)
                try:
                    self._receive(Connection(stream))
                except Truncated:
                    self.outcome.cut_short += 1
                except BuddysimError as error:
                    self.outcome.broken = self.outcome.broken or error
                    _drain(stream)

    def _receive(self, connection: Connection) -> None:
        message, outcome = connection.head(), self.outcome
        if outcome.broken is not None:
            raise outcome.broken
        if message.kind == MessageKind.HELLO:
            if outcome.answered:
                outcome.replaced += 1
                self._record.restart()
            outcome.answered, outcome.total = True, None
        elif message.kind == MessageKind.FAREWELL:
            outcome.total = message.position
        elif message.kind == MessageKind.FAILED:
            outcome.failed.append(os.strerror(message.problem))
        else:
            self._receive_snapshot(connection, message)

    def _receive_snapshot(self, connection: Connection, message: Message) -> None:
        self._symbols.set_maps(connection.maps())
        entries = connection.entries()
        self._symbols.learn(address for entry in entries for address in entry.frames)
        names = {entry.id: self._name_of(entry) for entry in entries}
        if (pattern := self._request.match) is not None:
            names = {number: name for number, name in names.items() if pattern.search(name)}
        values = connection.values(entries, self._request.look_at_bytes)
        label = self._request.trigger.label(message.position)
        self._record.add(message.position, label, entries, names, values)

    def _name_of(self, entry: Entry) -> str:
        if entry.kind == MemoryKind.STATIC:
            return self._symbols.demangle([entry.name])[0]
        site = self._symbols.call_site(entry.frames)
        return site if entry.kind == MemoryKind.HEAP else f"mmap: {site}"
