"""Plug-ins: users' modules, which register what they define as the modules of this package's folders do.

A plug-in is a Python file or a Cython file (``.pyx``, compiled at first use: `buddysim.base.compiled`). It is named on
the command line (``--plugin FILE``), in the environment (``BUDDYSIM_PLUGINS``, separated as ``PATH`` is), by
`load_plugin`, or by an entry point of the group ``buddysim.plugins`` of an installed package, whose value is the dotted
name of the module. What kind of thing it is follows from what it defines (`buddysim.base.kinds`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable
from functools import cache, wraps
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import NoReturn, TypeVar

from buddysim.base.boundary import inside
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.kinds import check_plugin
from buddysim.base.paths import is_file
from buddysim.base.plugin_modules import PACKAGE, added, installed, loaded, source_of, text_of

T = TypeVar("T")

GROUP = "buddysim.plugins"
VARIABLE = "BUDDYSIM_PLUGINS"
_busy: list[str] = []  # files whose import has begun


def modules() -> tuple[ModuleType, ...]:
    """Every plug-in: of installed packages, of the environment, of `load_plugin`; imported at first use.

    While a plug-in is being imported it is not among them.
    """
    if not _busy:
        _load_installed()
        for name in os.environ.get(VARIABLE, "").split(os.pathsep):
            if name:
                load_plugin(name)
    return imported()


def imported() -> tuple[ModuleType, ...]:
    """Every plug-in that this process has imported so far, without a look at the environment."""
    return (*installed.values(), *loaded.values(), *added.values())


def cached_by_plugins(function: Callable[[], T]) -> Callable[[], T]:
    """A function that is called once for each set of plug-ins; its result must not be changed."""
    results = cache(lambda plugin_modules: function())
    return wraps(function)(lambda: results(modules()))


def add(module: ModuleType, text: str) -> None:
    """Register the definitions of a module without a file, which a running program made from this text."""
    module.PLUGIN_TEXT = text  # type: ignore[attr-defined]
    added[module.__name__] = module


def load_plugin(path: str | os.PathLike[str]) -> ModuleType:
    """Register the definitions of a file; a file is loaded once.

    Raises
    ------
    BuddysimError
        where the file can't be read, compiled or imported, or defines nothing of any known kind
    """
    if "\0" in os.fspath(path):
        raise BuddysimError(f"{os.fspath(path)}: not the name of a file")
    file = Path(path).resolve()
    if file not in loaded:
        module = _import_file(file)
        try:
            check_plugin(module)
        except BaseException:
            del sys.modules[module.__name__]
            raise
        loaded[file] = module
    return loaded[file]


def loaded_files() -> list[Path]:
    """Return the files loaded by name, which another process of the same run must load too."""
    return list(loaded)


def checksums() -> dict[str, str]:
    """SHA-256 of the source of every plug-in in use, in hex, by its file name: part of a result's provenance.

    What a program added itself (`add`) has its own name.
    """
    return {
        source_of(module).name: hashlib.sha256(text_of(module) or source_of(module).read_bytes()).hexdigest()
        for module in modules()
    }


def _import_file(file: Path) -> ModuleType:
    if file.suffix not in (".py", ".pyx"):
        raise BuddysimError(f"{file}: not a plug-in: expected a file ending in .py or .pyx")
    if not is_file(file):
        raise BuddysimError(f"{file}: plug-in not found: expected a file")
    if not file.stem.isidentifier():
        raise BuddysimError(f"{file}: {shortened(file.stem)} is not the name of a Python module")
    name = f"{PACKAGE}.{file.stem}"
    if name in sys.modules:
        raise BuddysimError(f"{file}: a plug-in named {file.stem} is loaded already: {sys.modules[name].__file__}")
    library = file
    if file.suffix == ".pyx":
        from buddysim.base.compiled import compiled_extension

        library = compiled_extension(file, name)
    spec = importlib.util.spec_from_file_location(name, library)
    if spec is None or spec.loader is None:
        raise BuddysimError(f"{file}: not a module of Python")
    loader = spec.loader
    sys.modules.setdefault(PACKAGE, ModuleType(PACKAGE))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    module.PLUGIN_SOURCE = str(file)  # type: ignore[attr-defined]
    _busy.append(name)
    try:
        inside(lambda: loader.exec_module(module), lambda error: _refuse_import(f"{file}: plug-in", error))
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        _busy.pop()
    return module


def _refuse_import(what: str, error: BaseException) -> NoReturn:
    if isinstance(error, BuddysimError):
        raise error
    raise BuddysimError(f"{what} can't be imported: {type(error).__name__}: {error}") from error


def _load_installed() -> None:
    """Imports the plug-ins of installed packages, once."""
    for entry in entries():
        if entry.name not in installed:
            _busy.append(entry.name)
            try:
                installed[entry.name] = _import_entry(entry)
            finally:
                _busy.pop()


@cache
def entries() -> list[EntryPoint]:
    """Return the entry points of installed packages' plug-ins, by name, without importing them."""
    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def _import_entry(entry: EntryPoint) -> ModuleType:
    """Import the module of an entry point."""
    where = f"entry point {entry.name} = {entry.value} of {GROUP}:"
    return inside(lambda: _find_and_import(entry.value), lambda error: _refuse_import(where, error))


def _find_and_import(dotted: str) -> ModuleType:
    """Import a module; if only a ``.pyx`` has that name, compile it."""
    if importlib.util.find_spec(dotted) is None:
        package = importlib.util.find_spec(dotted.rpartition(".")[0])
        folders = package.submodule_search_locations if package is not None else None
        source = dotted.rpartition(".")[2] + ".pyx"
        for folder in folders or ():
            if (Path(folder) / source).is_file():
                return _import_file(Path(folder) / source)
    return importlib.import_module(dotted)
