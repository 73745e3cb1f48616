"""The preload library, compiled at first use into the user's cache."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from buddysim.base.errors import BuddysimError

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


def cache_folder() -> Path:
    """Where compiled helpers lie: ``$XDG_CACHE_HOME/buddysim``, else ``~/.cache/buddysim``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "buddysim"


def build(function: str | None = None) -> Path:
    """The library's path.

    Parameters
    ----------
    function : also count the calls of this function, which is none of `HOOKS`
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise BuddysimError("capture memory: gcc is missing; to install it: apt install gcc libc6-dev")
    names = ["table.c", "statics.c", "snapshot.c", "trigger.c", "hooks.c", "image.c"]
    flags = list(FLAGS)
    if function is not None:
        if platform.machine() != "x86_64":
            machine = platform.machine()
            raise BuddysimError(f"capture memory: --every-calls {function}: on x86-64 only, this is {machine}")
        names += ["function.c", "function.S"]
        flags.append(f"-DFUNCTION={function}")
    sources = [SOURCES / name for name in names]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    key = hashlib.sha256("\0".join([compiler, version, *flags]).encode())
    for source in [SOURCES / "capture.h", *sources]:
        key.update(source.read_bytes())
    library = cache_folder() / f"memory-{key.hexdigest()[:16]}.so"
    if not library.exists():
        _compile([compiler, *flags, *map(str, sources), "-ldl", "-lpthread"], library)
    return library


def _compile(command: list[str], library: Path) -> None:
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=library.parent, prefix=library.stem, suffix=".tmp")
        os.close(descriptor)
    except OSError as error:
        raise BuddysimError(f"{library.parent}: cannot be written: {error.strerror}; set XDG_CACHE_HOME") from None
    try:
        done = subprocess.run([*command, "-o", name], capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.splitlines() or [f"exit code {done.returncode}"]
            problem = next((line for line in lines if "error" in line), lines[0])
            advice = "; apt install libc6-dev" if re.search(r"\.h: No such file", problem) else ""
            raise BuddysimError(f"capture memory: the compiler failed: {problem}{advice}")
        Path(name).chmod(0o755)
        Path(name).replace(library)
    finally:
        Path(name).unlink(missing_ok=True)
