"""The errors a user can cause: one clear line each, exit code 2."""

from __future__ import annotations

import os

from buddysim.base.terminal import one_line


class BuddysimError(Exception):
    """A user's mistake. ``str(error)`` is one line: where, the problem, what was expected.

    Parameters
    ----------
    message : the line; text quoted from a file is made safe to print here
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class SectionFileError(BuddysimError):
    """A file of sections that can't be read or written.

    Parameters
    ----------
    path : path of the file
    section : name of the section, for example ``"header"`` or ``"chunk 3 of kernel 1"``
    offset : byte offset in the file at which the problem was found
    problem : the problem, and what was expected
    """

    def __init__(self, path: str | os.PathLike[str], section: str, offset: int, problem: str) -> None:
        super().__init__(f"{os.fspath(path)}: {section} at offset {offset}: {problem}")
        self.path, self.section, self.offset, self.problem = os.fspath(path), section, offset, problem


class TraceFileError(SectionFileError):
    """A trace file that can't be read or written."""
