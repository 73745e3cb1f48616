"""Registry of the synthetic workloads by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType

from buddysim.base.registry import Registry
from buddysim.synthetic.workload import Workload


def _adopt(module: ModuleType) -> Mapping[str, type[Workload]]:
    """Return the workloads that a module defines; base classes have no name and are left out."""
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Workload)]
    return {kind.name: kind for kind in classes if kind.__module__ == module.__name__ and kind.name}


#: The workloads by name.
REGISTRY: Registry[type[Workload]] = Registry(
    "synthetic workload", "buddysim.synthetic", ("a class derived from Workload that has a name",), _adopt
)


def make_trace(name: str, path: str | os.PathLike[str], settings: Mapping[str, object] | None = None) -> None:
    """Write the trace of a workload.

    Parameters
    ----------
    name : of the workload
    path : the file to write, replaced if it exists
    settings : parameters as text, sizes with their unit: ``{"footprint": "64 MiB"}``

    Raises
    ------
    BuddysimError
            an unknown workload, parameter or value, or a file that can't be written
    """
    REGISTRY.find(name).from_settings(settings or {}).save(path)
