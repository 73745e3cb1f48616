"""The modules of plug-ins that this process has imported, and their sources; `buddysim.base.plugins` imports them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

#: Plug-ins that come from files are modules of this package, which exists in no folder.
PACKAGE = "buddysim_plugins"

#: By file: those that were named.
loaded: dict[Path, ModuleType] = {}
#: By entry point: those of installed packages.
installed: dict[str, ModuleType] = {}
#: By name: those that a running program made.
added: dict[str, ModuleType] = {}


def source_of(module: ModuleType) -> Path:
    """Return the source file of a module: of a Cython plug-in the ``.pyx``.

    A module that a program added itself has only a name.
    """
    return Path(getattr(module, "PLUGIN_SOURCE", None) or getattr(module, "__file__", None) or module.__name__)


def source_of_module(name: str) -> Path | None:
    """Return the source file of the plug-in whose module has this name; None for other modules."""
    module = sys.modules.get(name)
    if module is None or not (name.startswith(f"{PACKAGE}.") or module in installed.values()):
        return None
    return source_of(module)


def text_of(module: ModuleType) -> bytes | None:
    """Return the source text of a module that a program added itself, else None."""
    text: str | None = getattr(module, "PLUGIN_TEXT", None)
    return None if text is None else text.encode()
