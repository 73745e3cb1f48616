"""C and C++ sources of a capture, compiled at first use into the user's cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from buddysim.base.compiled import cached_file, run_compiler
from buddysim.base.errors import BuddysimError
from buddysim.base.terminal import say


@cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout


def compiled_sources(
    name: str,
    suffix: str,
    command: Sequence[str],
    sources: Sequence[Path],
    failure: str,
    headers: Iterable[Path] = (),
    libraries: Sequence[str] = (),
    generated: Mapping[str, str] | None = None,
    slow: bool = False,
) -> Path:
    """Compile sources; return the result from the cache if the same sources were compiled before.

    Parameters
    ----------
    name, suffix : name of the file in the cache; it may begin with a folder of the cache
    command : the compiler and its options, without sources, libraries and ``-o``
    sources : files that are compiled
    failure : begins the message where they do not compile
    headers : files that the sources include
    libraries : what is linked, such as ``"-ldl"``
    generated : headers that the sources include and that are written for this compilation, by name
    slow : whether a message about the compilation is printed without a terminal, too

    Raises
    ------
    BuddysimError
        `failure` and the compiler's first error
    """
    generated = generated or {}
    key = ["\0".join([_version(command[0]), *command, *libraries]).encode()]
    key += [path.name.encode() + b"\0" + path.read_bytes() for path in (*sources, *headers)]
    key += [f"{header}\0{text}".encode() for header, text in generated.items()]

    def make(target: Path) -> None:
        if slow or sys.stderr.isatty():
            say(f"compiling the capture ({Path(name).name}): the first time on this machine only, up to half a minute")
        for header, text in generated.items():
            (target.parent / header).write_text(text)
        include = ["-I", str(target.parent)] if generated else []
        error = run_compiler([*command, *include, *map(str, sources), *libraries, "-o", str(target)], target)
        if error is not None:
            raise BuddysimError(f"{failure}: {error}")

    return cached_file(name, suffix, key, make)
