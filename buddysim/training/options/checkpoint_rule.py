"""Which blocks are recomputed, and which of their results are stored: the choices of PyTorch and torchtitan by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.training.autograd.replayed import KeepResults

#: Operators whose results torchtitan keeps (``torchtitan/distributed/activation_checkpoint.py`` and the list
#: `compute_intensive_ops` of ``torch/_functorch/partitioners.py``), by their names here.
COMPUTE_INTENSIVE = (
    "mm",
    "bmm",
    "addmm",
    "convolution",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "max",
    "topk",
)
CHOICES = "block, every:K, segments:N, selective or operators:NAME,.."
_NUMBERED = re.compile(r"(every|segments):([1-9][0-9]{0,5})")
_OPERATORS = re.compile(r"operators:([A-Za-z_0-9]+(?:,[A-Za-z_0-9]+)*)")


@dataclass(frozen=True)
class StoredOperators:
    """Operators whose results a recomputed region keeps.

    Attributes
    ----------
    names : of the operators, as a tape has them
    every_second_product : of the products of two matrices keep the first, third, .. alone, as torchtitan does
    """

    names: tuple[str, ...]
    every_second_product: bool = False

    def policy(self) -> KeepResults:
        """Return the policy of one region."""
        products = 0

        def keeps(name: str) -> bool:
            nonlocal products
            products += name == "mm"
            return name in self.names and not (self.every_second_product and name == "mm" and products % 2 == 0)

        return keeps


@dataclass(frozen=True)
class OffloadedStores:
    """Stored results that are on the host between forward and backward pass.

    Attributes
    ----------
    results : block, and number among the operators whose results it stores, of each
    defer : blocks behind its own with whose end a result leaves the GPU
    ahead : blocks before whose backward pass a result is fetched, from its own one on
    """

    results: tuple[tuple[int, int], ...]
    defer: int = 8
    ahead: int = 1


@dataclass(frozen=True)
class CheckpointRule:
    """Recomputation of consecutive blocks in regions.

    Attributes
    ----------
    first, last : numbers of the blocks, both inclusive
    together : blocks of one region
    stored : operators whose results stay; None: none
    early_stop : whether a region's second run ends with the last tensor that is needed
    offloaded : those of the stored results that are on the host; of regions of one block
    """

    first: int
    last: int
    together: int = 1
    stored: StoredOperators | None = None
    early_stop: bool = True
    offloaded: OffloadedStores | None = None

    def regions(self) -> Iterator[range]:
        """The blocks of each region."""
        for start in range(self.first, self.last + 1, self.together):
            yield range(start, min(start + self.together, self.last + 1))


def checkpoint_rules(choice: str, blocks: int, early_stop: bool = True) -> tuple[CheckpointRule, ...]:
    """Return the rules of a choice by name.

    Parameters
    ----------
    choice : ``block`` every block; ``every:K`` the K-th, 2K-th, .. block (torchtitan's former ``selective_ac_option``);
        ``segments:N`` N parts of which all but the last are recomputed (``checkpoint_sequential``); ``selective``
        every block but for torchtitan's list of operators, of whose products every second is recomputed;
        ``operators:NAME,..`` every block but for these operators
    blocks : of the model

    Raises
    ------
    BuddysimError
        another choice, or more segments than blocks
    """
    if not blocks:
        return ()
    every = CheckpointRule(0, blocks - 1, early_stop=early_stop)
    if choice == "block":
        return (every,)
    if choice == "selective":
        return (CheckpointRule(0, blocks - 1, 1, StoredOperators(COMPUTE_INTENSIVE, True), early_stop),)
    listed = _OPERATORS.fullmatch(choice)
    if listed:
        return (CheckpointRule(0, blocks - 1, 1, StoredOperators(tuple(listed[1].split(","))), early_stop),)
    numbered = _NUMBERED.fullmatch(choice)
    if not numbered:
        raise BuddysimError(f"checkpoint {shortened(choice)}: expected {CHOICES}")
    count = int(numbered[2])
    if numbered[1] == "every":
        return tuple(CheckpointRule(one, one, early_stop=early_stop) for one in range(count - 1, blocks, count))
    if count > blocks:
        raise BuddysimError(f"checkpoint {choice}: expected at most {blocks} segments, one for each block")
    size = blocks // count
    return (CheckpointRule(0, size * (count - 1) - 1, size, early_stop=early_stop),) if count > 1 else ()
