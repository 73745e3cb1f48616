"""The workloads by name."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.synthetic.workload import Workload

_NOT_WORKLOADS = ("catalogue", "grid", "scramble", "sizes", "workload")


def workload_names() -> list[str]:
    """The names of all workloads, in alphabetical order."""
    modules = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return sorted(name.replace("_", "-") for name in modules if name not in _NOT_WORKLOADS)


def load_workload(name: str) -> type[Workload]:
    """The workload of this name; a BuddysimError with the nearest one where there is none."""
    if name not in workload_names():
        known = workload_names()
        raise BuddysimError(
            f"{shortened(name)} is not a workload: expected one of {', '.join(known)}{hint(name, known)}"
        )
    module = import_module(f"buddysim.synthetic.{name.replace('-', '_')}")
    own = (value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__)
    return next(value for value in own if isinstance(value, type) and issubclass(value, Workload))


def make_trace(name: str, path: str | os.PathLike[str], settings: Mapping[str, object] | None = None) -> None:
    """Writes the trace of a workload.

    Parameters
    ----------
    name : of the workload
    path : the file to write, replaced if it is there
    settings : parameters as text, sizes with their unit: ``{"footprint": "64 MiB"}``
    """
    load_workload(name).from_settings(settings or {}).save(path)
