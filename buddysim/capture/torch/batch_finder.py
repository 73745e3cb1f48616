"""Finds the samples of a script's batch: as requested, its data loader's, or the extent that all inputs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class BatchFinder:
    """What is known of the batch.

    Parameters
    ----------
    requested : by the user; 0: found
    """

    def __init__(self, requested: int = 0) -> None:
        self.requested = requested
        self._of_loader = 0
        self._leading: set[int] | None = None
        self._anywhere: set[int] | None = None

    @property
    def batch(self) -> int:
        """Samples; 0 where nothing says how many."""
        if self.requested or self._of_loader:
            return self.requested or self._of_loader
        for extents in (self._leading, self._anywhere):
            if extents is not None and len(extents) == 1:
                return next(iter(extents))
        return 0

    def loaded(self, loading: Any) -> None:
        """Note a batch of a data loader."""
        size = getattr(getattr(loading, "_index_sampler", None), "batch_size", None)
        if isinstance(size, int):
            self._of_loader = size

    def called(self, tensors: Sequence[torch.Tensor]) -> None:
        """Note what a module with weights is called with: extents that all of its calls have in common."""
        shapes = [tuple(one.shape) for one in tensors if one.dim()]
        if not shapes:
            return
        leading = set.intersection(*({shape[0]} for shape in shapes))
        anywhere = set.intersection(*(set(shape) - {1} for shape in shapes))
        self._leading = leading if self._leading is None else self._leading & leading
        self._anywhere = anywhere if self._anywhere is None else self._anywhere & anywhere
