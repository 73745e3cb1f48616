"""What a Dask worker of a sweep does when it starts."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from buddysim.sweep.engines import NAMES, find


def dask_setup(worker: Any) -> None:
    """Imports the engines, so that no point waits for them, and leaves the terminal's process group.

    Ctrl-C is for the command, which then ends its workers.
    """
    for name in NAMES:
        find(name)
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
