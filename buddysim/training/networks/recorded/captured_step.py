"""What a recorded network knows of the capture that it is made from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CapturedStep:
    """A captured iteration.

    Attributes
    ----------
    batch : samples of the capture
    peak_bytes : of its tensors, as captured
    fixed_storages : those that don't depend on the batch
    by_extents : operators without a shape function, whose results grow in proportion, as a text
    """

    batch: int
    peak_bytes: int
    fixed_storages: frozenset[int]
    by_extents: str = ""
