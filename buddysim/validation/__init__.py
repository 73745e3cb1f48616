"""The simulator held against measurements and against other simulators: one comparison per file of this folder.

A comparison is a module with ``SUMMARY``, a line, and ``compare(options) -> Comparison``; ``ORDER`` is its position in
lists. Its name is its file's.
"""

from __future__ import annotations

from types import ModuleType

from buddysim.base.registry import Registry, modules_with
from buddysim.validation.comparison import Comparison, Judged, Options

CONTRACT = ("SUMMARY", "compare")

REGISTRY: Registry[ModuleType] = Registry("comparison", __name__, CONTRACT, modules_with(*CONTRACT))

__all__ = ["REGISTRY", "Comparison", "Judged", "Options"]
