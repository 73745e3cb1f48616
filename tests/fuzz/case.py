"""A test case: files of a type, written to a folder, and a command that reads them."""

from __future__ import annotations

import io
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.base.output import INCOMPLETE
from tests.fuzz.file_types import Files, FileType, command_line
from tests.fuzz.promise import keeps_its_promise, limited
from tests.fuzz.readers import READERS

#: Output files of commands.
_OUTPUTS = ("out", "out.bin", "out.svg", "out.csv", "out.html")
#: What differs between refusals for one reason: quoted values, numbers, names of files.
_VARIABLE = re.compile(r"'[^']*'?|\"[^\"]*\"?|\S*/\S+|[0-9][0-9.,e+]*")


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes
    ----------
    accepted : whether the reader accepted the files
    reason : of a refusal, without what differs between two files; else empty
    ran : whether a whole command ran
    """

    accepted: bool
    reason: str
    ran: bool


@st.composite
def cases(draw: st.DrawFn, kind: FileType) -> tuple[Files, tuple[str, ...]]:
    """Generate files of a type, and a command."""
    return draw(kind.files()), draw(st.sampled_from(kind.commands))


def write_files(folder: Path, files: Files) -> None:
    """Write the files into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def check(folder: Path, files: Files, command: tuple[str, ...]) -> int:
    """Run a case, and return the exit code. AssertionError: the promise is broken; other exceptions: a crash."""
    return _run(folder, files, command)[0]


def check_reader(folder: Path, kind: FileType, files: Files, command: tuple[str, ...], whole: int) -> Outcome:
    """Read the files of a case with the function of their type alone, then with the command where that is due.

    Parameters
    ----------
    whole : the command runs if it is a multiple of 8 for accepted files, of 16 for refused ones; always for types
        without a function of their own
    """
    if kind.name not in READERS:
        code, reason = _run(folder, files, command)
        return Outcome(not code, reason, True)
    write_files(folder, files)
    (folder / "command.txt").write_text(" ".join(command))
    refusal = ""
    with limited():
        try:
            READERS[kind.name](folder)
        except BuddysimError as error:
            refusal = str(error) or "no reason"
    assert "\n" not in refusal, f"two lines: {refusal!r}"
    if whole % (16 if refusal else 8):
        return Outcome(not refusal, _VARIABLE.sub("", refusal), False)
    _, reason = _run(folder, files, command)
    return Outcome(not refusal, _VARIABLE.sub("", refusal) or reason, True)


def _run(folder: Path, files: Files, command: tuple[str, ...]) -> tuple[int, str]:
    write_files(folder, files)
    (folder / "command.txt").write_text(" ".join(command))  # saved with the files that broke the promise
    err = io.StringIO()
    code, _ = keeps_its_promise(command_line(command, folder), err)
    remaining = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    for name, data in files.items():
        assert (folder / name).read_bytes() == data or name.startswith("store/"), f"the input {name} was changed"
    unfinished = [name for name in remaining if name.endswith((".partial", INCOMPLETE)) and name not in files]
    assert not unfinished, f"incomplete files: {unfinished}"
    if code:
        assert not remaining & set(_OUTPUTS), f"wrote {remaining & set(_OUTPUTS)} and ended with {code}"
    reasons = [line for line in err.getvalue().splitlines() if line.startswith("buddysim: error: ")]
    return code, _VARIABLE.sub("", reasons[0]) if reasons else ""
