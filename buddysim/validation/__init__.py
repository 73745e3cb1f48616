"""Comparisons of the simulator with measurements of real GPUs and with other simulators: one per file of this folder.

A comparison is a module with ``NAME``, its name on the command line; ``SUMMARY``, one line; and
``compare(options) -> ValidationReport``. ``ORDER`` is its position in lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from buddysim.base.registry import Registry
from buddysim.validation.comparison import (
    ComparedQuantity,
    Reference,
    ValidationOptions,
    ValidationReport,
    reference_of,
)

CONTRACT = ("NAME", "SUMMARY", "compare")


def _comparison_of(module: ModuleType) -> Mapping[str, ModuleType]:
    """Return the comparison that a module defines, by its name; empty if the module defines none."""
    return {module.NAME: module} if all(hasattr(module, name) for name in CONTRACT) else {}


REGISTRY: Registry[ModuleType] = Registry("comparison", __name__, CONTRACT, _comparison_of)

__all__ = ["REGISTRY", "ComparedQuantity", "Reference", "ValidationOptions", "ValidationReport", "reference_of"]
