"""Registries of policies: each module of a kind's folder defines one class."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TypeVar

from buddysim.base.registry import Registry
from buddysim.replay.component.base import Component

C = TypeVar("C", bound=Component)


def component_registry(kind: str, package: str, class_name: str, base: type[C]) -> Registry[type[C]]:
    """Return the registry of a kind of policies.

    Parameters
    ----------
    kind : name of the kind, as in `buddysim.base.kinds`
    package : dotted name of the kind's folder
    class_name : name of the class that a module of the kind defines
    base : the kind's base class
    """

    def adopt(module: ModuleType) -> Mapping[str, type[C]]:
        """The policy that a module defines, by the module's own name: values of machine files have underscores."""
        policy = getattr(module, class_name, None)
        if not (isinstance(policy, type) and issubclass(policy, base)):
            return {}
        return {module.__name__.rpartition(".")[2]: policy}

    return Registry(kind, package, (class_name,), adopt)
