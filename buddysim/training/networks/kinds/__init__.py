"""The kinds of layer: what each takes, how it changes a shape, what it costs, what its backward step needs.

One module per family; a module lists its kinds as ``KINDS``. What backward steps need is settled in
docs/networks.md (papers leave it open): CONV and FC read X and dY; an activation that runs in place reads Y and dY;
max pooling and LRN read X, Y and dY; average pooling, concatenation and addition only dY; normalisation reads X, dY
and saved statistics; dropout its mask and dY.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from buddysim.training.networks.kinds._kind import Attribute, Facts, Kind, Mismatch

KINDS: dict[str, Kind] = {
    kind.name: kind
    for module in pkgutil.iter_modules(__path__)
    if not module.name.startswith("_")
    for kind in import_module(f"{__name__}.{module.name}").KINDS
}

__all__ = ["KINDS", "Attribute", "Facts", "Kind", "Mismatch"]
