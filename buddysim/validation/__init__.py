"""Comparisons of the simulator with measurements of real GPUs and with other simulators: one per file of this folder.

A comparison is a module with ``NAME``, its name on the command line; ``SUMMARY``, one line; and
``compare(options) -> ValidationReport``. ``ORDER`` is its position in lists. Optional: ``PAGE``, the page that it is a
part of, and ``FILE_STEM``, the name of its files, both without ending; else these are its name. ``PAGE_HEAD`` and
``page_notes()`` are what the page says before and after the table of its quantities, Markdown.
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


def page_of(comparison: ModuleType) -> str:
    """Return the name of the page that shows a comparison, without its ending."""
    return str(getattr(comparison, "PAGE", comparison.NAME))


def file_stem(comparison: ModuleType) -> str:
    """Return the name of the table of points and of the figure of a comparison, without their endings."""
    return str(getattr(comparison, "FILE_STEM", comparison.NAME))


REGISTRY: Registry[ModuleType] = Registry("comparison", __name__, CONTRACT, _comparison_of)

__all__ = [
    "REGISTRY",
    "ComparedQuantity",
    "Reference",
    "ValidationOptions",
    "ValidationReport",
    "file_stem",
    "page_of",
    "reference_of",
]
