"""Which saved tensors are offloaded: those of which blocks and modules, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from buddysim.training.autograd.offload import OffloadSettings

#: Modules of the output, whose tensors are read again at once: torchtune leaves them on the GPU
#: (`get_act_offloading_ctx_manager`), and the loss runs outside of the hooks.
HEADS = ("lm_head", "output", "embed_out", "classifier", "score", "cls", "loss")


@dataclass(frozen=True)
class OffloadRule:
    """Offload of what autograd saves.

    Attributes
    ----------
    modules : names of modules within blocks whose saved tensors are offloaded (Megatron's ``offload_modules``); none:
        all of the model's but those of the output
    outputs : tensors of the output and the loss are offloaded too
    first, last : numbers of the blocks, both inclusive, whose tensors are offloaded; None: no limit
    """

    settings: OffloadSettings = field(default_factory=OffloadSettings)
    modules: tuple[str, ...] = ()
    outputs: bool = False
    first: int | None = None
    last: int | None = None

    def selector(self, blocks: Sequence[str]) -> Callable[[str], bool]:
        """Return what says, by a scope, whether the tensors saved there are offloaded.

        Parameters
        ----------
        blocks : paths of the model's blocks
        """
        in_range = tuple(f"{path}." for path in blocks[self.first or 0 : None if self.last is None else self.last + 1])
        blocks_alone = bool(self.modules) or self.first is not None or self.last is not None

        def selects(scope: str) -> bool:
            parts = scope.split(".")
            if blocks_alone and not f"{scope}.".startswith(in_range):
                return False
            if self.modules:
                return any(part in self.modules for part in parts)
            return self.outputs or parts[0] not in HEADS

        return selects
