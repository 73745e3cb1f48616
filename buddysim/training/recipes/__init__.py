"""The recipes: one file each in this folder, and those of plug-ins.

A file names its recipe ``RECIPE``. Everything asks the registry: the option's names, the step, the times.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from buddysim.base.registry import Registry
from buddysim.training.recipes.recipe import Recipe

__all__ = ["REGISTRY", "Recipe"]


def _recipes_of(module: ModuleType) -> Mapping[str, Recipe]:
    recipe = getattr(module, "RECIPE", None)
    return {recipe.name: recipe} if isinstance(recipe, Recipe) else {}


REGISTRY: Registry[Recipe] = Registry("recipe", __name__, ("RECIPE",), _recipes_of)
