"""What the papers on training state, and ours beside it: one file per subject; each marks its measures."""

from __future__ import annotations

import pkgutil
from importlib import import_module


def load_measures() -> None:
    """Imports every file of the folder, so that `numbers.MEASURES` is complete."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
