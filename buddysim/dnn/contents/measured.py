"""Contents of maps from a file of activations that were captured, or measured, while a network was trained."""

from __future__ import annotations

from buddysim.dnn.contents.observed import ObservedContents
from buddysim.errors import BuddysimError


def measured(path: str | None, epoch: float | None = None) -> ObservedContents:
    """From an activations file; None: the one that ships with the package."""
    raise BuddysimError(f"{path or 'measured activations'}: not readable yet: give densities or a density")
