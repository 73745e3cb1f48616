"""What a Dask worker of a sweep does when it starts."""

from __future__ import annotations

import contextlib
import os
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leaves the terminal's process group: Ctrl-C is for the command, which then ends its workers."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
