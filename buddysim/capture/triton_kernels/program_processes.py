"""Interprets the programs of a launch in several processes, and hands them over in order.

Each process is a copy of this one. It interprets every n-th group of programs, and sends their accesses and stores;
the stores are made here, in the order of the programs. A program does not see what another one of the launch stored:
launches with atomics run in one process.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeVar

Result = TypeVar("Result")

#: Programs that a process interprets before it sends them.
_GROUP: Final = 16
#: Programs of a launch below which copies of this process don't pay.
FEWEST_PROGRAMS: Final = 4 * _GROUP


@dataclass(frozen=True)
class _ProgramFailure:
    """An exception of a program, pickled, or its text."""

    pickled: bytes | None
    text: str


@dataclass
class _ProgramProcess:
    number: int
    results: BinaryIO


def interpret_in_processes(
    interpret: Callable[[range], Result], programs: int, workers: int
) -> Iterator[tuple[range, Result]]:
    """Yield groups of programs in their order, with their results.

    Parameters
    ----------
    interpret : interprets some programs, by their numbers; what it returns can be pickled
    programs : of the launch
    workers : processes

    Raises
    ------
    Exception
        the one of the first program that fails
    """
    groups = [range(first, min(first + _GROUP, programs)) for first in range(0, programs, _GROUP)]
    processes: list[_ProgramProcess] = []
    try:
        for number in range(min(workers, len(groups))):
            processes.append(_start(interpret, groups[number :: min(workers, len(groups))]))
        for number, group in enumerate(groups):
            yield group, _received(processes[number % len(processes)])
    finally:
        for process in processes:
            process.results.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.number, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.number, 0)


def _start(interpret: Callable[[range], Any], groups: list[range]) -> _ProgramProcess:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    reading, writing = os.pipe()
    number = os.fork()
    if number:
        os.close(writing)
        return _ProgramProcess(number, os.fdopen(reading, "rb"))
    try:
        os.close(reading)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
        with os.fdopen(writing, "wb") as results:
            for group in groups:
                pickle.dump(_interpreted(interpret, group), results, protocol=5)
                sys.stdout.flush()
                results.flush()
    finally:
        os._exit(0)


def _interpreted(interpret: Callable[[range], Any], group: range) -> Any:
    try:
        return interpret(group)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        try:
            return _ProgramFailure(pickle.dumps(error), text)
        except Exception:
            return _ProgramFailure(None, text)


def _received(process: _ProgramProcess) -> Any:
    try:
        result = pickle.load(process.results)
    except EOFError:
        raise RuntimeError("capture triton: a process that interprets programs ended early") from None
    if isinstance(result, _ProgramFailure):
        if result.pickled is None:
            raise RuntimeError(result.text)
        raise pickle.loads(result.pickled)
    return result
