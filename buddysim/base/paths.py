"""Whether there is a file or a folder of a name that a user gave."""

from __future__ import annotations

import os

AnyPath = str | os.PathLike[str]


def exists(path: AnyPath) -> bool:
    """Return whether there is a file or a folder; a name that none can have is that of none."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises for a name that is too long


def is_file(path: AnyPath) -> bool:
    """Return whether there is a file; a name that none can have is that of none."""
    return os.path.isfile(path)  # noqa: PTH113 - as above
