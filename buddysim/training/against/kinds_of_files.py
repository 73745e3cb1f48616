"""What kind of measurement a file holds, by its content."""

from __future__ import annotations

import os
from typing import Literal

from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import open_input

MeasurementKind = Literal["memory snapshot", "profiler trace"]

_PICKLE = b"\x80"
_GZIP = b"\x1f\x8b"


def kind_of_measurement(path: str | os.PathLike[str]) -> MeasurementKind:
    """Return the kind of a file: a pickle is a memory snapshot, JSON (also compressed) a profiler trace.

    Raises
    ------
    BuddysimError
        where it can't be read, or is neither
    """
    with open_input(path, "measurement") as file:
        start = file.read(64)
    if start[:1] == _PICKLE:
        return "memory snapshot"
    if start[:2] == _GZIP or start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        return "profiler trace"
    raise BuddysimError(
        f"{os.fspath(path)}: neither a PyTorch profiler trace (.json, .json.gz) nor a memory snapshot (.pickle)"
    )
