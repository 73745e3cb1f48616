"""The layers that Liger's scripts measure: one module per script, with what each provider runs.

A module has ``KERNEL``, the script's name, and ``SETUPS``: for each provider, what the script sets up. Optional:
``CONTAMINATED``, why the figures can't be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from buddysim.base.registry import Registry

CONTRACT = ("KERNEL", "SETUPS")


def _layer_of(module: ModuleType) -> Mapping[str, ModuleType]:
    return {module.KERNEL: module} if all(hasattr(module, name) for name in CONTRACT) else {}


REGISTRY: Registry[ModuleType] = Registry("layer script", __name__, CONTRACT, _layer_of)
