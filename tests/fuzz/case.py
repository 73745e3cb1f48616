"""A test case: files of a type, written to a folder, and a command that reads them."""

from __future__ import annotations

import shutil
from pathlib import Path

from hypothesis import strategies as st

from buddysim.base.output import INCOMPLETE
from tests.fuzz.file_types import Files, FileType, command_line
from tests.fuzz.promise import keeps_its_promise

#: Output files of commands.
_OUTPUTS = ("out", "out.bin", "out.svg", "out.csv")


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
    write_files(folder, files)
    (folder / "command.txt").write_text(" ".join(command))  # saved with the files that broke the promise
    code, _ = keeps_its_promise(command_line(command, folder))
    remaining = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    for name, data in files.items():
        assert (folder / name).read_bytes() == data or name.startswith("store/"), f"the input {name} was changed"
    unfinished = [name for name in remaining if name.endswith((".partial", INCOMPLETE)) and name not in files]
    assert not unfinished, f"incomplete files: {unfinished}"
    if code:
        assert not remaining & set(_OUTPUTS), f"wrote {remaining & set(_OUTPUTS)} and ended with {code}"
    return code
