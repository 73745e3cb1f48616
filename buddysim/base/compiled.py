"""Compile at first use, into the user's cache: libraries of captures, and plug-ins written in Cython."""

from __future__ import annotations

import hashlib
import importlib.util
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from buddysim.base.build_flags import COMPILE_ARGS, REPLAY_ARGS, SHARED_MODULE
from buddysim.base.cache import cache_subfolder, is_own
from buddysim.base.errors import BuddysimError
from buddysim.base.terminal import say

PACKAGE = Path(__file__).resolve().parents[1]
NEEDS = "needs Cython, a C compiler and Python's headers: pip install 'buddysim[plugins]'; apt install gcc python3-dev"

#: An error of Cython, GCC or Clang: ``FILE:LINE:COLUMN: what``; warnings and notes have the same form.
_LOCATED = re.compile(r"\S+:\d+:\d+: (?!warning|note)")


def cached_file(name: str, suffix: str, key: Iterable[bytes], make: Callable[[Path], None]) -> Path:
    """Return a compiled file from the cache; if it is missing, `make` writes it under another name first.

    Parameters
    ----------
    name, suffix : of the file, the digest of `key` between them; the name may begin with a folder of the cache
    key : all that the result depends on
    make : called with the path to write; raises BuddysimError where it can't
    """
    digest = hashlib.sha256()
    for part in key:
        digest.update(hashlib.sha256(part).digest())
    path = Path(f"{name}-{digest.hexdigest()[:24]}{suffix}")
    target = cache_subfolder(str(path.parent)) / path.name
    if is_own(target):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(dir=target.parent)
    try:
        unfinished = Path(folder) / f"{Path(name).name}{suffix}"
        make(unfinished)
        unfinished.chmod(0o700)
        unfinished.replace(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target


def run_compiler(command: Sequence[str], target: Path) -> str | None:
    """Runs a compiler that writes `target`.

    Parameters
    ----------
    command : the compiler and all its arguments, the target's path among them
    target : the file that the compiler writes

    Returns
    -------
    None; if the target is missing, the compiler's first error, with file and line where it names them
    """
    done = subprocess.run(list(command), capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0 and target.is_file():
        return None
    return _first_error(done.stdout + done.stderr) or f"exit code {done.returncode}"


def _first_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    located = [line for line in lines if _LOCATED.match(line)]
    errors = [line for line in lines if "error" in line.lower()]
    return next(iter(located or errors or lines), "")


def compiled_extension(source: Path, module: str) -> Path:
    """Return the extension module of a ``.pyx`` file, compiled if needed.

    Parameters
    ----------
    source : the file; it may cimport from this package
    module : dotted name that the module gets

    Raises
    ------
    BuddysimError
        where Cython or a compiler is missing, or the file does not compile: the first error, with its line
    """
    headers = [path.relative_to(PACKAGE) for form in ("*.pxd", "*.h") for path in PACKAGE.rglob(form)]
    shared = sorted(path for path in headers if path.parts[0] != "capture")  # captures' are not Cython's
    try:
        content = source.read_bytes()
    except OSError as error:
        raise BuddysimError(f"{source}: can't read the plug-in: {error.strerror}") from None
    build = (module, *COMPILE_ARGS, *REPLAY_ARGS, sys.version, platform.machine())
    key = [content, *(part.encode() for part in build)]
    key += [path.as_posix().encode() + b"\0" + (PACKAGE / path).read_bytes() for path in shared]
    key.append(_content_of(SHARED_MODULE))  # tells which Cython built the package
    suffix = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
    return cached_file(source.stem, suffix, key, lambda target: _compile(source, module, target))


def _content_of(module: str) -> bytes:
    spec = importlib.util.find_spec(module)
    return Path(spec.origin).read_bytes() if spec is not None and spec.origin is not None else b""


def _compile(source: Path, module: str, target: Path) -> None:
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    compiler = shutil.which("gcc") or shutil.which("cc")
    missing = [name for name in ("Cython", "setuptools") if importlib.util.find_spec(name) is None]
    if missing or compiler is None or not headers.exists():
        raise BuddysimError(f"{source}: a plug-in in Cython is compiled at first use, which {NEEDS}")
    say(f"compiling {source.name} (once; kept in {target.parent.parent})")
    program = Path(__file__).with_name("compile_plugin.py")
    command = [sys.executable, str(program), str(source), module, str(target)]
    error = run_compiler(command, target)
    if error is not None:
        reason = re.sub(rf"\S*{re.escape(source.name)}", source.name, error)  # a copy of it was compiled
        raise BuddysimError(f"{source}: the plug-in does not compile: {reason}")
