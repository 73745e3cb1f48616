"""The memory configurations that a replay compares, one Cython module each: a `Scheme` derived from `SchemeBase`."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from buddysim.base.registry import Registry
from buddysim.replay.engine.scheme import SchemeBase


def _adopt(module: ModuleType) -> Mapping[str, type[SchemeBase]]:
    scheme = getattr(module, "Scheme", None)
    if not (isinstance(scheme, type) and issubclass(scheme, SchemeBase)):
        return {}
    return {module.__name__.rpartition(".")[2].replace("_", "-"): scheme}


REGISTRY: Registry[type[SchemeBase]] = Registry("replay scheme", __name__, ("Scheme",), _adopt)
