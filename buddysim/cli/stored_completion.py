"""The completion scripts in the user's cache: a shell asks for one at every start, and making it imports everything.

A script is stored under a hash of all that its names come from. The cache is never needed: where it can't be read or
written, or a script in it is damaged, the script is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import buddysim
from buddysim.base import plugins
from buddysim.base.cache import cache_root, cache_subfolder, is_own
from buddysim.base.errors import BuddysimError
from buddysim.base.output import write_bytes
from buddysim.base.plugin_modules import added, text_of

_FOLDER = "completion"
_PACKAGE = Path(__file__).resolve().parents[1]
#: Where a clone has the names of its traces.
_MANIFEST = _PACKAGE.parent / "traces" / "MANIFEST.toml"
#: With a ValueError Python says that no file can have this name.
_WITHOUT_CACHE = (BuddysimError, OSError, PackageNotFoundError, ValueError)


def stored_script(shell: str, plugin_files: Iterable[str]) -> str | None:
    """Return the completion script that was stored, without importing any plug-in.

    Parameters
    ----------
    shell : its name
    plugin_files : the plug-ins that this command would load by name, in addition to those that are loaded

    Returns
    -------
    None where no script of the same sources and plug-ins was stored
    """
    with contextlib.suppress(*_WITHOUT_CACHE):
        path = cache_root() / _FOLDER / _name(shell, plugin_files)
        if is_own(path):
            checksum, _, script = path.read_bytes().partition(b"\n")
            if checksum == _checksum(script):
                return script.decode()
    return None


def store_script(shell: str, script: str) -> None:
    """Store a completion script that this process made with the plug-ins that it has loaded."""
    with contextlib.suppress(*_WITHOUT_CACHE):
        path = cache_subfolder(_FOLDER) / _name(shell)
        write_bytes(path, _checksum(script.encode()) + b"\n" + script.encode())
        path.chmod(0o600)  # `is_own` takes no file that others may write


def _checksum(script: bytes) -> bytes:
    return hashlib.sha256(script).hexdigest().encode()


def _name(shell: str, plugin_files: Iterable[str] = ()) -> str:
    parts = [shell, buddysim.__version__, version("shtab"), sys.version, *_states(_PACKAGE), *_states(_MANIFEST)]
    for file in sorted({*plugins.loaded_files(), *(Path(name).resolve() for name in plugin_files)}):
        parts += [str(file), hashlib.sha256(file.read_bytes()).hexdigest()]
    for name, module in sorted(added.items()):
        parts += [name, repr(text_of(module))]
    for entry in plugins.entries():
        parts += [entry.name, entry.value]
        package = importlib.util.find_spec(entry.value.partition(".")[0])  # imports nothing: this name has no parent
        for path in (package.submodule_search_locations or [package.origin or ""]) if package is not None else ():
            parts += _states(Path(path))
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _states(path: Path) -> Iterator[str]:
    """Yield path, size and time of every file of a folder, or of one file; of none that isn't there."""
    files = [path] if path.is_file() else []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        files += [Path(folder, name) for name in sorted(names)]
    for file in files:
        status = file.stat()
        yield f"{file} {status.st_size} {status.st_mtime_ns}"
