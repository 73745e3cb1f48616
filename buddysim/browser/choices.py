"""What the form offers: the registered models, machines, links, recipes and optimizers."""

from __future__ import annotations

from typing import Any

from buddysim.base.kinds import registry
from buddysim.machine.training import TrainingMachine, shared_links
from buddysim.training import recipes
from buddysim.training.optimizers import optimizer_names


def choices() -> dict[str, Any]:
    """Return the names by field; machines with the bytes of memory that a training can use."""
    return {
        "model": list(registry("network").names()),
        "machine": {name: TrainingMachine.load(name).memory_bytes for name in TrainingMachine.names()},
        "link": list(shared_links()),
        "recipe": list(recipes.REGISTRY.names()),
        "optimizer": list(optimizer_names()),
    }
