"""One training iteration as a list of steps: their computations, allocations, launches, waits and releases.

A step is one computation on the compute stream: a layer's forward or backward pass or a part of it, a recomputation,
the encoding or decoding of a feature map, an update of weights. A task runs concurrently with the compute stream: a
copy over the link, or work of the host. `iteration.build` makes a program, an allocator assigns addresses to its
tensors, and `schedule` computes its times. A program never changes: if copies do not fit, the allocator returns another
program that launches them later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from buddysim.training.iteration.timeline import INDEPENDENT, SharedFractions

#: Bytes of the GPU are counted by these. Of recorded networks alone: `master_weights` (in single precision, next to
#: narrower ones), `gathered_shards` (weights of other GPUs), `gradient_buckets` (what is reduced over GPUs), `logits`
#: (scores and loss), `temporaries` (gradients of activations too), `inputs`; their `feature_maps` are all that is saved
#: for backward.
TensorKind = Literal[
    "weights",
    "master_weights",
    "weight_gradients",
    "optimizer_state",
    "gathered_shards",
    "gradient_buckets",
    "inputs",
    "feature_maps",
    "encoded_maps",
    "decoded_maps",
    "logits",
    "gradient_maps",
    "temporaries",
    "workspace",
]
TENSOR_KINDS: tuple[TensorKind, ...] = get_args(TensorKind)
Pass = Literal["forward", "encode", "recompute", "decode", "backward", "update"]
FORWARD_PART: tuple[Pass, ...] = ("forward", "encode")
Direction = Literal["offload", "prefetch"]
Stream = Literal["offload", "prefetch", "host", "nvme", "gather", "reduce"]
CopyTiming = Literal["before", "overlapped", "after"]

SECOND = 10**12  # picoseconds


class ProgramTensor(NamedTuple):
    """One life of one data structure on the GPU; `layer` made it, or its in-place chain starts there."""

    number: int
    layer: int
    kind: TensorKind
    byte_count: int
    part: str


class QueuedTask(NamedTuple):
    """Work concurrent with the compute stream: a copy over the link, or the host's work on a copied feature map.

    Attributes
    ----------
    stream : the direction of the link, ``"host"``, its ``"nvme"`` drives, or what GPUs gather and reduce together
    layer : whose X it is (or whose saved tensors they are)
    tensor : on the GPU, that it reads or fills; -1 for work of the host
    timing : ``"before"`` the computation of the step that launches it, which waits for it; ``"overlapped"`` with it;
        ``"after"`` it
    byte_count : of the feature map, neither encoded nor compressed, or of the whole tensor that GPUs gather or reduce;
        `moved_bytes` cross the link to the host
    until : the step whose end waits for it: the one that launches it, or a later one
    after : tasks that must be over before it starts
    pins, unpins : bytes of host memory that are pinned when it is launched, and unpinned at the end of step `until`
    name : of a recorded operation, ``"all_gather of model.layers.3"``
    """

    number: int
    stream: Stream
    layer: int
    tensor: int
    timing: CopyTiming
    byte_count: int
    moved_bytes: int
    duration_ps: int
    until: int
    after: tuple[int, ...] = ()
    pins: int = 0
    unpins: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One computation of one layer, with its tasks and the tensors that it allocates, uses and releases.

    Order of events: allocate the tensors of the computation, then the prefetched feature maps, then the workspace;
    launch the tasks that come before or are overlapped; compute; launch those that come after; wait for every task
    whose `until` it is; release.

    Attributes
    ----------
    tasks : positions in `Program.tasks`, in order of launch
    allocate, release, reads, writes : positions in `Program.tensors`
    workspace : the tensor of `workspace_bytes`; None where there is none
    """

    index: int
    layer: int
    pass_: Pass
    compute_ps: int
    part: str
    workspace_bytes: int = 0
    tasks: tuple[int, ...] = ()
    allocate: tuple[int, ...] = ()
    release: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    workspace: int | None = None


@dataclass(frozen=True)
class Program:
    """The steps of an iteration, and the tensors and tasks that they name by position.

    Attributes
    ----------
    resident : tensors that live before the first step and after the last one, in order of allocation
    shared : fractions of the rates that offloads and prefetches reach where both run at once
    host_bytes : of host memory that weights, gradients and optimizer state take throughout
    """

    steps: tuple[Step, ...]
    tensors: tuple[ProgramTensor, ...]
    tasks: tuple[QueuedTask, ...]
    resident: tuple[int, ...]
    shared: SharedFractions = INDEPENDENT
    host_bytes: int = 0

    @cached_property
    def lives(self) -> tuple[tuple[int, int], ...]:
        """First and last step of each tensor, both inclusive."""
        first, last = [0] * len(self.tensors), [len(self.steps) - 1] * len(self.tensors)
        for step in self.steps:
            for tensor in step.allocate:
                first[tensor] = step.index
            for tensor in step.release:
                last[tensor] = step.index
        return tuple(zip(first, last, strict=True))

    @cached_property
    def first_backward(self) -> int:
        """The step with which the backward part begins."""
        return next((step.index for step in self.steps if step.pass_ not in FORWARD_PART), len(self.steps))

    def stashed(self, tensor: int) -> bool:
        """Whether a tensor is a feature map, its encoding or logits, stored from the forward to the backward part."""
        first, last = self.lives[tensor]
        is_stored = first < self.first_backward <= last
        return is_stored and self.tensors[tensor].kind in ("feature_maps", "encoded_maps", "logits")


def defer(step: Step, later: Step, task: QueuedTask) -> tuple[Step, Step, QueuedTask]:
    """Launches a copy, and allocates the tensor that it fills, one step later; at the latest right before it is read.

    Parameters
    ----------
    step, later : the step that launches the copy, and the one after it
    task : an overlapped prefetch of `step`

    Returns
    -------
    the two steps and the copy, changed
    """
    tensor = task.tensor
    step = replace(step, tasks=_without(step.tasks, task.number), allocate=_without(step.allocate, tensor))
    later = replace(later, tasks=(task.number, *later.tasks))
    task = task._replace(until=max(task.until, later.index))
    if tensor in later.reads:
        return step, replace(later, allocate=(tensor, *later.allocate)), task._replace(timing="before")
    last = () if later.workspace is None else (later.workspace,)
    others = later.allocate if later.workspace is None else _without(later.allocate, later.workspace)
    return step, replace(later, allocate=(*others, tensor, *last)), task


def _without(positions: tuple[int, ...], removed: int) -> tuple[int, ...]:
    return tuple(position for position in positions if position != removed)


def copy_ps(byte_count: int, bytes_per_s: int, latency_ps: int = 0) -> int:
    """Time of a transfer: latency, then the bytes at the link's effective rate, rounded up to a picosecond."""
    return latency_ps + -(-byte_count * SECOND // bytes_per_s)
