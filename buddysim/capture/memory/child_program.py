"""The program to capture: searched as a shell does, and refused if no library can be loaded into it."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import struct
from pathlib import Path
from typing import Final

from buddysim.base.errors import BuddysimError

_MACHINES: Final = {62: "x86_64", 183: "aarch64", 243: "riscv64"}
_PT_INTERP: Final = 3


def find_program(name: str) -> str:
    """Return the path of a program by its name or path, spelt as a shell passes it.

    Raises
    ------
    BuddysimError
        where there is none, or none into which a library can be preloaded
    """
    path = shutil.which(name)
    if path is None:
        target = Path(name)
        problem = "is not executable" if target.is_file() else "not found"
        raise BuddysimError(f"{name}: {problem}: expected a program to run")
    _check(Path(path), name, 0)
    return path


def _check(path: Path, name: str, depth: int) -> None:
    try:
        status = path.stat()
        with path.open("rb") as file:
            head = file.read(4096)
            if head[:2] == b"#!" and depth < 4:
                words = shlex.split(head[2:].partition(b"\n")[0].decode("utf-8", "replace"))
                if words:
                    _check(Path(words[0]), name, depth + 1)
                return
            if head[:4] != b"\x7fELF":
                raise BuddysimError(f"{name}: neither an ELF program nor a script with #!: expected a native program")
            _check_elf(head, file.read(), name)
    except OSError as error:
        raise BuddysimError(f"{name}: {error.strerror}") from None
    if status.st_mode & 0o6000 or _has_capabilities(path):
        raise BuddysimError(f"{name}: setuid, setgid or with capabilities: nothing can be preloaded into it")


def _check_elf(head: bytes, rest: bytes, name: str) -> None:
    data = head + rest
    machine = struct.unpack_from("<H", head, 18)[0]
    if head[4] != 2 or head[5] != 1 or _MACHINES.get(machine) != platform.machine():
        raise BuddysimError(f"{name}: not a 64-bit program of this machine ({platform.machine()})")
    phoff = struct.unpack_from("<Q", head, 32)[0]
    size, count = struct.unpack_from("<2H", head, 54)
    try:
        kinds = [struct.unpack_from("<I", data, phoff + at * size)[0] for at in range(count)]
    except struct.error:
        raise BuddysimError(f"{name}: damaged: its program headers lie beyond its end") from None
    if _PT_INTERP not in kinds:
        raise BuddysimError(f"{name}: statically linked: nothing can be preloaded into it; link it dynamically")


def _has_capabilities(path: Path) -> bool:
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False
