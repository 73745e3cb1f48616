"""Registries of policies: each module of a kind's folder defines one class."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

from buddysim.base.registry import Registry
from buddysim.replay.component.base import Component


def component_registry(kind: str, package: str, class_name: str) -> Registry[type[Component]]:
    """Return the registry of a kind of policies.

    Parameters
    ----------
    kind : name of the kind, as in `buddysim.base.kinds`
    package : dotted name of the kind's folder
    class_name : name of the class that a module of the kind defines; the folder's `base` has the class that it is
        derived from, of that name and ``Base``
    """
    base = getattr(import_module(f"{package}.base"), f"{class_name}Base")

    def adopt(module: ModuleType) -> Mapping[str, type[Component]]:
        """The policy that a module defines, by the module's own name: values of machine files have underscores."""
        policy = getattr(module, class_name, None)
        if not (isinstance(policy, type) and issubclass(policy, base)):
            return {}
        return {module.__name__.rpartition(".")[2]: policy}

    return Registry(kind, package, (class_name,), adopt)
