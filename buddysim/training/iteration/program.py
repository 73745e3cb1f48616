"""One training iteration as a list of steps: what is computed, allocated, copied, waited for and released, in order.

A step is one layer's forward or backward computation (or its forward computation once more, where a plan recomputes).
`iteration.build` makes the steps; nothing here knows times of day or addresses, which `schedule` and `memory` add.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from buddysim.training.iteration.plan import Direction

Kind = Literal["weights", "weight_gradients", "feature_maps", "gradient_maps", "workspace"]
KINDS: tuple[Kind, ...] = ("weights", "weight_gradients", "feature_maps", "gradient_maps", "workspace")
Pass = Literal["forward", "recompute", "backward"]
Timing = Literal["before", "beside", "after"]

SECOND = 10**12  # picoseconds


class Tensor(NamedTuple):
    """One life of one data structure on the GPU; `layer` made it, or its in-place chain starts there."""

    number: int
    layer: int
    kind: Kind
    byte_count: int
    part: str


class Copy(NamedTuple):
    """A transfer over the link.

    Attributes
    ----------
    layer : whose X it is (or whose saved tensors they are)
    timing : ``"before"`` the step's computation, which waits for it; ``"beside"`` it, so that the step's end does;
        ``"after"`` it, and the step's end waits too
    byte_count : of the tensor; `moved_bytes` cross the link
    """

    number: int
    direction: Direction
    layer: int
    tensor: int
    timing: Timing
    byte_count: int
    moved_bytes: int
    duration_ps: int


@dataclass
class Step:
    """One computation of one layer, and what goes with it.

    Order of events: allocate what the computation needs, then room for what comes back beside it, then the workspace;
    start the copies that come before or beside; compute; start the copies that come after; wait for all of them;
    release.
    """

    index: int
    layer: int
    pass_: Pass
    compute_ps: int
    part: str
    workspace_bytes: int = 0
    copies: list[int] = field(default_factory=list)
    allocate: list[int] = field(default_factory=list)
    release: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    workspace: int | None = None


@dataclass(frozen=True)
class Program:
    """The steps of an iteration, and the tensors and copies that they name by position.

    `resident` are the tensors that live before the first step and after the last one, in order of allocation.
    """

    steps: tuple[Step, ...]
    tensors: tuple[Tensor, ...]
    copies: list[Copy]
    resident: tuple[int, ...]

    def defer(self, step: Step, copy: int) -> None:
        """Launches a copy, and allocates what it fills, one step later; at the latest right before it is read."""
        later = self.steps[step.index + 1]
        tensor = self.copies[copy].tensor
        step.copies.remove(copy)
        step.allocate.remove(tensor)
        later.copies.insert(0, copy)
        if tensor in later.reads:
            self.copies[copy] = self.copies[copy]._replace(timing="before")
            later.allocate.insert(0, tensor)
        else:
            later.allocate.append(tensor)
            if later.workspace is not None:  # it comes last
                later.allocate.remove(later.workspace)
                later.allocate.append(later.workspace)


def copy_ps(byte_count: int, bytes_per_s: int, latency_ps: int = 0) -> int:
    """Time of a transfer: latency, then the bytes at the link's effective rate, rounded up to a picosecond."""
    return latency_ps + -(-byte_count * SECOND // bytes_per_s)
