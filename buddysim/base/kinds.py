"""The kinds that have a registry, and the modules of these registries.

Only this module names all registries. It names them as text: so `base` imports no higher folder, and lower folders can
ask higher ones (the machine loader reads the sections of replay schemes).
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.plugin_modules import source_of

if TYPE_CHECKING:
    from buddysim.base.registry import Registry

#: The module of each kind that has its `Registry` as ``REGISTRY``.
HOMES = {
    "compressor": "buddysim.compress.compressors",
    "importer": "buddysim.importers",
    "synthetic workload": "buddysim.synthetic.workload_classes",
    "workload": "buddysim.workloads.workload_registry",
    "replay scheme": "buddysim.replay.schemes",
    "warp scheduler": "buddysim.replay.sm.scheduler",
    "L1 banking": "buddysim.replay.l1.banking",
    "slice hash": "buddysim.replay.l2.slice_hash",
    "DRAM model": "buddysim.replay.dram.model",
    "DRAM refresh": "buddysim.replay.dram.refresh",
    "link protocol": "buddysim.replay.link.protocol",
    "write drain": "buddysim.replay.dram.write_drain",
    "metadata prefetcher": "buddysim.replay.schemes.buddy.prefetcher",
    "training scheme": "buddysim.training.schemes",
    "recipe": "buddysim.training.recipes",
    "optimizer": "buddysim.training.optimizers",
    "network": "buddysim.training.zoo",
    "layer kind": "buddysim.training.networks.kinds",
    "architecture": "buddysim.training.architectures.registry",
    "analysis": "buddysim.analyses",
    "figure": "buddysim.figures",
    "command": "buddysim.cli",
}


def registry(kind: str) -> Registry[Any]:
    """The registry of a kind."""
    kind_registry: Registry[Any] = import_module(HOMES[kind]).REGISTRY
    return kind_registry


def check_plugin(module: ModuleType) -> None:
    """Refuse a module that defines no member of any kind; the message names what the nearest kind needs."""
    registries = [registry(kind) for kind in HOMES]
    if any(each.adopt(module) for each in registries):
        return
    matching = {each.kind: sum(hasattr(module, name) for name in each.contract) for each in registries}
    nearest = max(registries, key=lambda each: matching[each.kind] / len(each.contract))
    if matching[nearest.kind]:
        lacking = [name for name in nearest.contract if not hasattr(module, name)]
        problem = f"a {nearest.kind} without {', '.join(lacking)}" if lacking else f"not a whole {nearest.kind}"
    else:
        problem = "defines nothing of any kind"
    every = "; ".join(f"{each.kind}: {', '.join(each.contract)}" for each in registries)
    raise BuddysimError(f"{source_of(module)}: {problem}: expected one of: {every}")
