"""The preload library, compiled at first use into the user's cache."""

from __future__ import annotations

import platform
import re
import shutil
from pathlib import Path
from typing import Final

from buddysim.base.errors import BuddysimError
from buddysim.capture.compilation import compiled_sources

SOURCES: Final = Path(__file__).parent / "preload"
FLAGS: Final = ("-O2", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-static-libgcc")
HOOKS: Final = (
    "malloc",
    "calloc",
    "realloc",
    "free",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "mmap",
)


def build(function: str | None = None) -> Path:
    """Return the path of the compiled library.

    Parameters
    ----------
    function : a function, not in `HOOKS`, whose calls are counted too
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise BuddysimError("capture memory: gcc is missing; to install it: apt install gcc libc6-dev")
    names = ["table.c", "statics.c", "untracked.c", "snapshot.c", "trigger.c", "hooks.c", "image.c"]
    command = [compiler, *FLAGS]
    if function is not None:
        if platform.machine() != "x86_64":
            machine = platform.machine()
            raise BuddysimError(f"capture memory: --every-calls {function}: on x86-64 only, this is {machine}")
        names += ["function.c", "function.S"]
        command.append(f"-DFUNCTION={function}")
    try:
        return compiled_sources(
            "memory",
            ".so",
            command,
            [SOURCES / name for name in names],
            "capture memory: the compiler failed",
            headers=[SOURCES / "capture.h"],
            libraries=["-ldl", "-lpthread"],
        )
    except BuddysimError as error:
        advice = "; apt install libc6-dev" if re.search(r"\.h: No such file", str(error)) else ""
        raise BuddysimError(f"{error}{advice}") from None
