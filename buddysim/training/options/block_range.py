"""Blocks of a model, or modules within them, whose saved tensors a rule is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Modules of the output, whose tensors are read again at once: torchtune leaves them on the GPU
#: (`get_act_offloading_ctx_manager`), and the loss runs outside of the hooks.
HEADS = ("lm_head", "output", "embed_out", "classifier", "score", "cls", "loss")


@dataclass(frozen=True)
class BlockRange:
    """Consecutive blocks.

    Attributes
    ----------
    first, last : their numbers, both inclusive; `last` None: to the model's last one
    modules : names of modules within them; none: all
    """

    first: int = 0
    last: int | None = None
    modules: tuple[str, ...] = ()

    def selects(self, scope: str, blocks: Sequence[str]) -> bool:
        """Whether a scope lies in them.

        Parameters
        ----------
        blocks : paths of the model's blocks
        """
        selected = tuple(f"{path}." for path in blocks[self.first : None if self.last is None else self.last + 1])
        if not f"{scope}.".startswith(selected):
            return False
        return not self.modules or any(part in self.modules for part in scope.split("."))


def selector(ranges: Sequence[BlockRange], blocks: Sequence[str], outputs: bool = False) -> Callable[[str], bool]:
    """Return what says, by a scope, whether the tensors saved there are a rule's.

    Parameters
    ----------
    ranges : none: the whole model but its output
    outputs : the whole model with its output
    """
    known: dict[str, bool] = {}

    def selects(scope: str) -> bool:
        if scope not in known:
            if ranges:
                known[scope] = any(one.selects(scope, blocks) for one in ranges)
            else:
                known[scope] = outputs or scope.split(".")[0] not in HEADS
        return known[scope]

    return selects
