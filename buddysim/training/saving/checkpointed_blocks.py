"""Makes the blocks of a model run as regions that are recomputed.

As the layers of transformers do, a block's `forward` runs in the region, and the hooks of its module outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.checkpoint import CheckpointedRegion
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.stored_offload import OffloadedResults
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.checkpoint_rule import CheckpointRule


def checkpoint_blocks(blocks: Sequence[Module], rules: Iterable[CheckpointRule]) -> None:
    """Recompute blocks by rules.

    Parameters
    ----------
    blocks : of the model, in order; their `forward` is replaced
    """
    for rule in rules:
        offloaded = rule.offloaded
        host = None
        if offloaded is not None:
            host = OffloadedResults(active_tape(), offloaded.results, offloaded.defer, offloaded.ahead)
        for region in rule.regions():
            parts = _Parts(rule, region, host, is_last=region[-1] == rule.last)
            for position, number in enumerate(region):
                block = blocks[number]
                block.forward = parts.part(position, block.forward)  # type: ignore[method-assign]


class _Parts:
    """The blocks of one region; each forward pass makes a region of its own."""

    def __init__(self, rule: CheckpointRule, blocks: range, host: OffloadedResults | None, *, is_last: bool) -> None:
        self.rule, self.count, self.block = rule, len(blocks), blocks[0]
        self.host, self.is_last = host, is_last
        self.region: CheckpointedRegion | None = None

    def part(self, position: int, forward: Callable[..., Any]) -> Callable[..., Any]:
        """A block's forward pass within the region."""

        def run(*args: Any, **kwargs: Any) -> Any:
            if position == 0:
                stored = self.rule.stored
                policy = None if stored is None else stored.policy()
                self.region = CheckpointedRegion(active_tape(), policy, self.rule.early_stop, self.host, self.block)
            region = self.region
            assert region is not None
            if position == self.count - 1:
                self.region = None
            result = region.run(forward, args, kwargs)
            if self.host is not None and self.region is None:
                self.host.forward_ends(self.block, is_last=self.is_last)
            if self.count > 1 and not isinstance(result, Tensor):
                raise BuddysimError("blocks that return several tensors: expected regions of one block each")
            return result

        return run
