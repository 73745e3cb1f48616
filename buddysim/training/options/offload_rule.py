"""Which saved tensors are offloaded: those of which blocks and modules, and how."""

from __future__ import annotations

from dataclasses import dataclass, field

from buddysim.training.autograd.offload import OffloadSettings
from buddysim.training.options.block_range import BlockRange


@dataclass(frozen=True)
class OffloadRule:
    """Offload of what autograd saves.

    Attributes
    ----------
    ranges : blocks and modules whose saved tensors are offloaded; none: all of the model's but those of the output
    outputs : tensors of the output and the loss are offloaded too, where there are no ranges
    """

    settings: OffloadSettings = field(default_factory=OffloadSettings)
    ranges: tuple[BlockRange, ...] = ()
    outputs: bool = False
