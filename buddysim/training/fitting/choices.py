"""What may happen to what a group of a network saves, and where optimizer and weights may lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.training.autograd.compressed import CODE_BYTES
from buddysim.training.options.checkpoint_rule import COMPUTE_INTENSIVE, StoredOperators
from buddysim.training.options.optimizer_offload import OptimizerOffload
from buddysim.training.options.weights_offload import WeightsOffload

DELAYED = "offload-optimizer-delayed"
#: Names of `--allow`: what changes a training's results.
LOSSY = (*(f"compress-{bits}" for bits in CODE_BYTES), DELAYED)
_ATTENTION = tuple(name for name in COMPUTE_INTENSIVE if "attention" in name)


@dataclass(frozen=True)
class GroupChoice:
    """What happens to what a group saves.

    Attributes
    ----------
    name : for people
    recomputes : its forward pass runs again in the backward pass
    stored : operators whose results stay where it does; None: none
    offloads : names of modules whose saved tensors go to the host; empty: all, of a recomputed group its input; None:
        nothing does
    bits : of a value, where saved tensors are stored in fewer; None: as they are
    """

    name: str
    recomputes: bool = False
    stored: StoredOperators | None = None
    offloads: tuple[str, ...] | None = None
    bits: int | None = None


KEEP = GroupChoice("keep")
RECOMPUTE = GroupChoice("recompute", recomputes=True)
OFFLOAD = GroupChoice("offload", offloads=())
RECOMPUTE_OFFLOAD = GroupChoice("recompute, offload input", recomputes=True, offloads=())
#: Recomputation of blocks that PyTorch's selective checkpointing allows, from the least work on.
SELECTIVE = (
    GroupChoice("recompute all but products", recomputes=True, stored=StoredOperators(COMPUTE_INTENSIVE)),
    GroupChoice(
        "recompute every second product", recomputes=True, stored=StoredOperators(COMPUTE_INTENSIVE, True)
    ),
    GroupChoice("recompute all but attention", recomputes=True, stored=StoredOperators(_ATTENTION)),
)  # fmt: skip


def offload_of(modules: str) -> GroupChoice:
    """Return the offload of what one kind of module saves."""
    return GroupChoice(f"offload {modules}", offloads=(modules,))


@dataclass(frozen=True)
class HostPlacement:
    """Where optimizer state and weights lie.

    Attributes
    ----------
    name : for people
    scheme : that decides so and nothing else
    optimizer, weights : rules of what the host does; None: the GPU does it
    """

    name: str
    scheme: str
    optimizer: OptimizerOffload | None = None
    weights: WeightsOffload | None = None


ON_GPU = HostPlacement("on the GPU", "eager")
OPTIMIZER_ON_HOST = HostPlacement("optimizer on the host", "offload-optimizer", OptimizerOffload())
WEIGHTS_ON_HOST = HostPlacement("weights and optimizer on the host", "offload-weights", OptimizerOffload(),
                                WeightsOffload())  # fmt: skip
LATE_OPTIMIZER = HostPlacement("optimizer on the host, one step late", DELAYED, OptimizerOffload(delayed=True))


def check_allowed(names: Sequence[str]) -> None:
    """Refuse an unknown name of what may change results.

    Raises
    ------
    BuddysimError
        it and the nearest one; two numbers of bits
    """
    for name in names:
        if name not in LOSSY:
            raise BuddysimError(f"allow {shortened(name)}: expected some of {', '.join(LOSSY)}{hint(name, LOSSY)}")
    widths = [name for name in names if name != DELAYED]
    if len(set(widths)) > 1:
        raise BuddysimError(f"allow {','.join(widths)}: expected one number of bits")


def compressed_choices(allow: Sequence[str]) -> tuple[GroupChoice, ...]:
    """Return the lossy choices that names allow."""
    bits = [int(name.removeprefix("compress-")) for name in LOSSY if name in allow and name != DELAYED]
    return tuple(GroupChoice(f"compress to {one} bits", bits=one) for one in bits)
