"""The corpus: for each way in which files of a type end, the smallest file that was found, in one archive a type."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from tests.fuzz.file_types import Files

FOLDER = Path(__file__).parent / "corpus"
_COMMAND = "command.json"
#: Larger files are no part of the corpus.
_LARGEST = 1 << 17
#: Ways of a type, at most.
_MOST = 64

Case = tuple[Files, tuple[str, ...]]


class Corpus:
    """The cases of a type, by the way in which they end.

    Parameters
    ----------
    name : of the type
    """

    def __init__(self, name: str) -> None:
        self.path = FOLDER / f"{name}.tar.xz"
        self.cases: dict[str, Case] = {}

    def add(self, reason: str, files: Files, command: tuple[str, ...]) -> None:
        """Take a case that ends in a new way, or that is smaller than the one there."""
        size, known = _size(files), self.cases.get(reason)
        if size <= _LARGEST and (len(self.cases) < _MOST if known is None else size < _size(known[0])):
            self.cases[reason] = files, command

    def write(self) -> None:
        """Write the archive: the same bytes for the same cases."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:xz", format=tarfile.PAX_FORMAT) as archive:
            for number, (reason, (files, command)) in enumerate(sorted(self.cases.items())):
                about = json.dumps({"ends": reason, "command": command}).encode()
                for name, data in {**files, _COMMAND: about}.items():
                    member = tarfile.TarInfo(f"{number:02d}/{name}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_bytes(packed.getvalue())

    def read(self) -> list[Case]:
        """Return the cases of the archive, and take them."""
        by_number: dict[str, Files] = {}
        with tarfile.open(self.path) as archive:
            for member in archive:
                file = archive.extractfile(member)
                assert file is not None
                number, _, name = member.name.partition("/")
                by_number.setdefault(number, {})[name] = file.read()
        for files in by_number.values():
            about = json.loads(files.pop(_COMMAND))
            self.cases[about["ends"]] = files, tuple(about["command"])
        return list(self.cases.values())


def _size(files: Files) -> int:
    return sum(map(len, files.values()))
