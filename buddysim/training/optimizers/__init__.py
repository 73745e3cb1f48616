"""The optimizers: one file each in this folder, and those of plug-ins.

A file names its optimizer ``OPTIMIZER``. Weights of described networks are in single precision, as are their gradients
and state: with FP16 and BF16 these are the master weights, as PyTorch's automatic casting holds them. Weights of
recorded networks have the formats of their recipe.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.registry import Registry
from buddysim.training.optimizers.optimizer import Optimizer

__all__ = ["NONE", "REGISTRY", "Optimizer", "find_optimizer", "optimizer_names"]

#: Weights are not updated, as in the papers' iterations.
NONE = "none"


def _optimizers_of(module: ModuleType) -> Mapping[str, Optimizer]:
    optimizer = getattr(module, "OPTIMIZER", None)
    return {optimizer.name: optimizer} if isinstance(optimizer, Optimizer) else {}


REGISTRY: Registry[Optimizer] = Registry("optimizer", __name__, ("OPTIMIZER",), _optimizers_of)


def optimizer_names() -> tuple[str, ...]:
    """Every name that a request may have."""
    return (NONE, *REGISTRY.names())


def find_optimizer(name: str | None) -> Optimizer | None:
    """Return an optimizer by its name; None for ``"none"``.

    Raises
    ------
    BuddysimError
        an unknown name; the message has the nearest
    """
    if name is None or name == NONE:
        return None
    if name not in REGISTRY:
        names = optimizer_names()
        raise BuddysimError(f"optimizer {shortened(name)}: expected one of {', '.join(names)}{hint(name, names)}")
    return REGISTRY.find(name)
