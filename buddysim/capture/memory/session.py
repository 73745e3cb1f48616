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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from buddysim.base.errors import BuddysimError
from buddysim.capture.child_process import reporting_socket, signals_to
from buddysim.capture.memory.snapshot_recorder import SnapshotRecorder
from buddysim.capture.memory.symbols import Symbols
from buddysim.capture.memory.wire import (
    AllocationEntry,
    Connection,
    MemoryKind,
    MessageHeader,
    MessageKind,
    Residence,
    Truncated,
)
from buddysim.trace.format import PAGE_BYTES

_ADDR_NO_RANDOMIZE: Final = 0x0040000  # personality(2)
_NANOSECONDS: Final = 1_000_000_000


@dataclass(frozen=True)
class Trigger:
    """The trigger of snapshots.

    Parameters
    ----------
    interval : first distance of two snapshots: calls, or nanoseconds of processor time
    calls : whether the unit is calls
    function : function whose calls count; empty: every allocating function
    """

    interval: int
    calls: bool = False
    function: str = ""

    def label(self, position: int) -> str:
        if self.calls:
            return f"after {position} calls of {self.function or 'allocating functions'}"
        return f"after {position / _NANOSECONDS:.3f} s of processor time"


@dataclass(frozen=True)
class CaptureRequest:
    """The scope of a capture: ``struct settings`` of preload/capture.h, and the names of allocations to capture."""

    trigger: Trigger
    snapshots: int
    min_bytes: int
    sample_bytes: int
    seed: int
    match: re.Pattern[str] | None = None
    follow: bool = False


@dataclass
class CapturedProcess:
    """One process of the run: the program, or a child that is followed.

    Parameters
    ----------
    program : path of its program
    record : recorder of its snapshots; of a child, from its first snapshot on
    total : length of its run, if it sent that at its end
    cut_short : number of snapshots that arrived incomplete
    failed : errors of snapshots that could not be taken
    replaced : number of times that it replaced itself by another program
    own_ns : its known processor time, ns
    residence : memory of its largest snapshot
    """

    program: str = ""
    record: SnapshotRecorder | None = None
    total: int | None = None
    cut_short: int = 0
    failed: list[str] = field(default_factory=list)
    replaced: int = 0
    own_ns: int = 0
    residence: Residence = field(default_factory=Residence)

    @property
    def length(self) -> int:
        """The known length of its run."""
        return self.total or max((taken.position for taken in self.record.snapshots), default=0) if self.record else 0

    @property
    def max_snapshot_bytes(self) -> int:
        """Bytes of its largest snapshot."""
        return 0 if self.record is None else self.record.max_snapshot_bytes


@dataclass
class MemoryCaptureOutcome:
    """Outcome of a captured run.

    Parameters
    ----------
    returncode : the program's, negative for a signal
    answered : whether the library was loaded
    processes : captured processes, in the order in which they began
    children : programs of children that were not captured; "" for a copy of their parent
    owners : children with memory of their own: other programs, and copies with large allocations
    all_ns : processor time of the program with all its children, ns
    broken : error after which nothing was written any more; the program ran to its end
    """

    returncode: int = 0
    answered: bool = False
    processes: list[CapturedProcess] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    all_ns: int = 0
    broken: BuddysimError | None = None

    def largest(self) -> CapturedProcess:
        """The process with the largest snapshot; the first one if several are equal."""
        return max(self.processes, key=lambda process: process.max_snapshot_bytes)


def _without_address_randomization() -> None:
    """Ask for the same addresses in every run; called in the program's process before it starts."""
    libc = ctypes.CDLL(None)
    libc.personality(libc.personality(0xFFFFFFFF) | _ADDR_NO_RANDOMIZE)


def _children_ns() -> int:
    """Return the processor time of all descendants that have ended, ns."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * _NANOSECONDS)


def _drain(stream: socket.socket) -> None:
    """Receive the remaining messages of the program, which then continues."""
    with contextlib.suppress(OSError):
        while stream.recv(1 << 20):
            pass


class Session:
    """Run one program.

    Parameters
    ----------
    record : of the program
    library : to preload
    request : what is captured
    more : gives the record of each further process, where children are followed
    """

    def __init__(
        self, record: SnapshotRecorder, library: Path, request: CaptureRequest, more: Callable[[], SnapshotRecorder]
    ) -> None:
        self._library, self._request, self._more = library, request, more
        self._symbols: dict[int, Symbols] = {}  # by process
        self._first = CapturedProcess(record=record)
        self._processes: dict[int, CapturedProcess] = {}  # running processes, by process id
        self.outcome = MemoryCaptureOutcome(processes=[self._first])

    def run(self, command: Sequence[str], program: str) -> MemoryCaptureOutcome:
        """Run the program to its end."""
        before = _children_ns()
        with reporting_socket("memory", backlog=128) as (listener, folder):
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
                    self._receive_messages(listener, process)
                except BaseException:
                    process.kill()
                    process.wait()
                    raise
        self.outcome.returncode = process.returncode
        self.outcome.all_ns = _children_ns() - before
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
            "min": request.min_bytes,
            "whole": request.sample_bytes,
            "sample": request.sample_bytes,
            "page": PAGE_BYTES,
            "seed": request.seed,
            "follow": int(request.follow),
        }
        others = os.environ.get("LD_PRELOAD")
        return os.environ | {
            "BUDDYSIM_CAPTURE_MEMORY": ";".join(f"{key}={value}" for key, value in settings.items()),
            "LD_PRELOAD": f"{self._library}:{others}" if others else str(self._library),
        }

    def _receive_messages(self, listener: socket.socket, process: subprocess.Popen[bytes]) -> None:
        """Receive messages until the program has ended and all of them have arrived."""
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
                except BuddysimError as error:
                    self.outcome.broken = self.outcome.broken or error
                    _drain(stream)

    def _receive(self, connection: Connection) -> None:
        process = self._first
        try:
            message, outcome = connection.head(), self.outcome
            if outcome.broken is not None:
                raise outcome.broken
            if message.kind == MessageKind.CHILD:
                outcome.children.append(message.text)
                if message.position and not self._request.follow:
                    outcome.owners.append(message.text)
                return
            process = self._process(message)
            process.own_ns = max(process.own_ns, message.cpu_ns)
            if message.kind == MessageKind.FAREWELL:
                process.total = message.position
            elif message.kind == MessageKind.FAILED:
                process.failed.append(os.strerror(message.problem))
            elif message.kind == MessageKind.SNAPSHOT:
                self._receive_snapshot(connection, process, message)
        except Truncated:
            process.cut_short += 1

    def _process(self, message: MessageHeader) -> CapturedProcess:
        """Return the process that sent a message."""
        known = self._processes.get(message.pid)
        if message.kind != MessageKind.HELLO:
            return known or self._first
        if known is not None and known.total is None:
            known.replaced += known is self._first or known.max_snapshot_bytes > 0  # a child usually does, at once
            known.program, known.own_ns = message.text, 0
            if known.record is not None:
                known.record.restart()
        elif not self.outcome.answered:
            known, self.outcome.answered = self._first, True
            known.program = message.text
        else:  # a child, or another one that got the number of a process that has ended
            known = CapturedProcess(message.text)
            self.outcome.processes.append(known)
        self._processes[message.pid] = known
        self._symbols[message.pid] = Symbols(str(self._library))
        return known

    def _receive_snapshot(self, connection: Connection, process: CapturedProcess, message: MessageHeader) -> None:
        symbols = self._symbols[message.pid]
        symbols.set_maps(connection.maps())
        entries = connection.entries()
        symbols.learn(address for entry in entries for address in entry.frames)
        names = {entry.id: name for entry in entries if (name := self._name_of(symbols, entry)) is not None}
        if (pattern := self._request.match) is not None:
            names = {number: name for number, name in names.items() if pattern.search(name)}
        values = connection.values(entries, self._request.sample_bytes)
        label = self._request.trigger.label(message.position)
        if process.record is None:
            process.record = self._more()
        process.record.add(message.position, label, entries, names, values)
        process.residence = max(process.residence, message.residence, key=lambda candidate: candidate.resident)

    @staticmethod
    def _name_of(symbols: Symbols, entry: AllocationEntry) -> str | None:
        """Leave out allocations that a language's library holds for itself."""
        if entry.kind in (MemoryKind.STATIC, MemoryKind.UNTRACKED):
            return symbols.demangle([entry.name])[0]
        if symbols.only_runtime(entry.frames):
            return None
        site = symbols.call_site(entry.frames)
        return site if entry.kind == MemoryKind.HEAP else f"mmap: {site}"
