"""Which saved tensors are stored in fewer bits, and in how many."""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.options.block_range import BlockRange


@dataclass(frozen=True)
class CompressionRule:
    """Compression of what autograd saves, as Gist's delayed precision reduction.

    Attributes
    ----------
    bits : of a value: 16, 10 (three in four bytes) or 8
    ranges : blocks and modules whose saved tensors are compressed; none: all of the model's but those of the output
    """

    bits: int = 8
    ranges: tuple[BlockRange, ...] = ()
