"""The kinds of things that are found by name, and where their registries are.

This is the one place that knows all registries. It names them as text, so that the ground floor imports nothing above
it, and lower folders (the machine loader, which reads the sections that replay schemes have) can ask for higher ones.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.registry import Registry

#: For each kind the module that has its `Registry` as ``REGISTRY``.
HOMES = {
    "compressor": "buddysim.compress.registry",
    "importer": "buddysim.importers",
    "synthetic workload": "buddysim.synthetic.registry",
    "replay scheme": "buddysim.replay.schemes",
    "training scheme": "buddysim.training.schemes",
    "network": "buddysim.training.networks.zoo",
    "layer kind": "buddysim.training.networks.kinds",
    "figure": "buddysim.figures",
    "command": "buddysim.cli",
}


def registry(kind: str) -> Registry[Any]:
    """The registry of a kind."""
    found: Registry[Any] = import_module(HOMES[kind]).REGISTRY
    return found


def check_plugin(module: ModuleType) -> None:
    """Refuses a module that defines nothing of any kind; the message says what the nearest kind still lacks."""
    registries = [registry(kind) for kind in HOMES]
    if any(known.adopt(module) for known in registries):
        return
    there = {known.kind: sum(hasattr(module, name) for name in known.contract) for known in registries}
    nearest = max(registries, key=lambda known: there[known.kind] / len(known.contract))
    if there[nearest.kind]:
        lacking = [name for name in nearest.contract if not hasattr(module, name)]
        problem = f"a {nearest.kind} without {', '.join(lacking)}" if lacking else f"not a whole {nearest.kind}"
    else:
        problem = "defines nothing that is known"
    every = "; ".join(f"{known.kind}: {', '.join(known.contract)}" for known in registries)
    raise BuddysimError(f"{getattr(module, 'PLUGIN_SOURCE', module.__file__)}: {problem}: expected one of: {every}")
