"""One training iteration as a list of steps, each with what it computes, allocates, copies, waits for and releases.

A step is one layer's forward or backward computation (or its forward computation once more, where a plan recomputes).
`iteration.build` makes a program, `memory.place` gives its tensors addresses and `schedule` puts it on the clock. A
program never changes: where copies find no room, `memory.place` returns another one that launches them later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from buddysim.training.iteration.plan import Direction

Kind = Literal["weights", "weight_gradients", "feature_maps", "gradient_maps", "workspace"]
KINDS: tuple[Kind, ...] = ("weights", "weight_gradients", "feature_maps", "gradient_maps", "workspace")
Pass = Literal["forward", "recompute", "backward"]
Timing = Literal["before", "overlapped", "after"]

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
    timing : ``"before"`` the step's computation, which waits for it; ``"overlapped"`` with it, so that the step's end
        waits; ``"after"`` it, and the step's end waits too
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


@dataclass(frozen=True, slots=True)
class Step:
    """One computation of one layer, with its copies and the tensors that it allocates, uses and releases.

    Order of events: allocate the tensors of the computation, then room for maps that come back during it, then the
    workspace; start the copies that come before or are overlapped; compute; start the copies that come after; wait for
    all of them; release.

    Attributes
    ----------
    copies : positions in `Program.copies`, in order of launch
    allocate, release, reads, writes : positions in `Program.tensors`
    workspace : the tensor of `workspace_bytes`; None where there is none
    """

    index: int
    layer: int
    pass_: Pass
    compute_ps: int
    part: str
    workspace_bytes: int = 0
    copies: tuple[int, ...] = ()
    allocate: tuple[int, ...] = ()
    release: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    workspace: int | None = None


@dataclass(frozen=True)
class Program:
    """The steps of an iteration, and the tensors and copies that they name by position.

    `resident` are the tensors that live before the first step and after the last one, in order of allocation.
    """

    steps: tuple[Step, ...]
    tensors: tuple[Tensor, ...]
    copies: tuple[Copy, ...]
    resident: tuple[int, ...]


def defer(step: Step, later: Step, copy: Copy) -> tuple[Step, Step, Copy]:
    """Launches a copy, and allocates the tensor that it fills, one step later; at the latest right before it is read.

    Parameters
    ----------
    step, later : the step that launches the copy, and the one after it
    copy : an overlapped prefetch of `step`

    Returns
    -------
    the two steps and the copy, changed
    """
    tensor = copy.tensor
    step = replace(step, copies=_without(step.copies, copy.number), allocate=_without(step.allocate, tensor))
    later = replace(later, copies=(copy.number, *later.copies))
    if tensor in later.reads:
        return step, replace(later, allocate=(tensor, *later.allocate)), copy._replace(timing="before")
    last = () if later.workspace is None else (later.workspace,)
    others = later.allocate if later.workspace is None else _without(later.allocate, later.workspace)
    return step, replace(later, allocate=(*others, tensor, *last)), copy


def _without(positions: tuple[int, ...], removed: int) -> tuple[int, ...]:
    return tuple(position for position in positions if position != removed)


def copy_ps(byte_count: int, bytes_per_s: int, latency_ps: int = 0) -> int:
    """Time of a transfer: latency, then the bytes at the link's effective rate, rounded up to a picosecond."""
    return latency_ps + -(-byte_count * SECOND // bytes_per_s)
