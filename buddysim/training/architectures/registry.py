"""The architectures: one module each in this folder, and those of plug-ins.

A module lists what it has as ``ARCHITECTURES``; a file's classes are then read as this package's are.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from buddysim.base.registry import Registry
from buddysim.training.architectures.architecture import Architecture


def _architectures_of(module: ModuleType) -> Mapping[str, Architecture]:
    listed = getattr(module, "ARCHITECTURES", ())
    if not isinstance(listed, list | tuple) or not all(isinstance(one, Architecture) for one in listed):
        return {}
    return {one.name: one for one in listed}


REGISTRY: Registry[Architecture] = Registry(
    "architecture", "buddysim.training.architectures", ("ARCHITECTURES",), _architectures_of
)
