"""GPU memory of an iteration: the addresses that an allocator assigns, and the bytes allocated, by kind.

During a step the GPU holds all earlier tensors and all that the step allocates; the step frees tensors at its end. An
allocator that reserves groups of tensors for the whole iteration holds these groups instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from buddysim.base.memory_pool import PoolExhausted
from buddysim.training.iteration.program import TENSOR_KINDS, Program, ProgramTensor, Step, TensorKind

UNLIMITED = 1 << 62  # bytes

#: Bytes allocated during each step, by kind of tensor.
MemoryOverTime = dict[TensorKind, list[int]]
#: Returns a smaller workspace for a step whose workspace does not fit: bytes (0 for none), or None for no smaller one.
WorkspaceFallback = Callable[[Step, PoolExhausted], int | None]
#: Gives the fallback of one attempt to allocate an iteration.
WorkspaceRelief = Callable[[], WorkspaceFallback]
#: Whether a tensor counts.
TensorFilter = Callable[[ProgramTensor], bool]


def is_any_tensor(tensor: ProgramTensor) -> bool:
    """All tensors count."""
    return True


def is_not_workspace(tensor: ProgramTensor) -> bool:
    """The workspace of CONV algorithms doesn't count."""
    return tensor.kind != "workspace"


def is_map_tensor(tensor: ProgramTensor) -> bool:
    """Feature maps, logits, encodings, decoded copies and gradient maps count (Gist, Section V-A)."""
    return tensor.kind in ("feature_maps", "logits", "encoded_maps", "decoded_maps", "gradient_maps")


@dataclass(frozen=True)
class FailedRequest:
    """The first request that an iteration makes and memory cannot serve.

    Attributes
    ----------
    memory : ``"gpu"`` or ``"host"``
    layer, pass_ : the step that makes the request; None and ``"resident"`` if the request is for all tensors that live
        throughout the iteration
    kind : kind of the requested tensor, or a phrase for the tensors that live throughout
    requested_bytes, free_bytes, largest_free_bytes : size of the request, of all free blocks, of the largest free block
    shortfall_bytes : bytes by which the memory (or, if only fragmentation is at fault, its largest free block) is too
        small for the request
    """

    memory: str
    layer: int | None
    pass_: str
    kind: str
    requested_bytes: int
    free_bytes: int
    largest_free_bytes: int
    shortfall_bytes: int


@dataclass(frozen=True)
class CachingFacts:
    """What PyTorch's caching allocator holds next to the tensors of a recorded step.

    Attributes
    ----------
    peak_allocated_bytes : the most that its blocks in use take, with rounding and workspaces
    workspace_bytes : of libraries, within the allocator
    outside_bytes : of the process, outside of the allocator
    """

    peak_allocated_bytes: int
    workspace_bytes: int
    outside_bytes: int


@dataclass(frozen=True)
class TensorAddresses:
    """Addresses of the tensors of an iteration.

    Attributes
    ----------
    program : the program with its deferred copies launched later
    addresses : by tensor; -1 for a tensor that was never allocated, or under an allocator without addresses
    high_water : the highest address in use, in bytes
    failure : None, or the first request that memory cannot serve; nothing after it is allocated
    deferred : copies that waited for free memory, and by how many steps
    groups : for an allocator that reserves groups throughout, the largest member of each; else None
    pool_bytes : size of the pool that serves the iteration; None where none does, or the allocator has no pool
    caching : of PyTorch's caching allocator; else None
    """

    program: Program
    addresses: tuple[int, ...]
    high_water: int
    failure: FailedRequest | None
    deferred: dict[int, int]
    groups: tuple[ProgramTensor, ...] | None = None
    pool_bytes: int | None = None
    caching: CachingFacts | None = None

    @property
    def beside_tensors_bytes(self) -> int:
        """Bytes that the process takes and that no tensor has: workspaces of libraries, context."""
        return self.caching.workspace_bytes + self.caching.outside_bytes if self.caching else 0


@dataclass(frozen=True)
class Usage:
    """GPU memory allocated over the steps that count.

    Attributes
    ----------
    peak_bytes : the most that is allocated at once, at the step `peak_step`
    time_mean_bytes : weighted by time
    mean_over_steps_bytes : each step counts the same
    at_peak : bytes by kind at the instant of the peak (the first one, where several are as high)
    """

    peak_bytes: int
    time_mean_bytes: int
    mean_over_steps_bytes: int
    peak_step: int
    at_peak: dict[TensorKind, int]


def levels(
    program: Program, part: str | None = None, groups: tuple[ProgramTensor, ...] | None = None
) -> MemoryOverTime:
    """Bytes allocated during each step, by kind: every one of `TENSOR_KINDS`.

    Parameters
    ----------
    part : counts only tensors of layers of this part of the network
    groups : `TensorAddresses.groups`
    """
    step_count = len(program.steps)
    change = {kind: [0] * (step_count + 1) for kind in TENSOR_KINDS}

    def count(step: int, tensors: Iterable[ProgramTensor], sign: int) -> None:
        for tensor in tensors:
            if part is None or tensor.part == part:
                change[tensor.kind][step] += sign * tensor.byte_count

    count(0, [program.tensors[index] for index in program.resident] if groups is None else groups, 1)
    for step in program.steps if groups is None else ():
        if step.allocate:
            count(step.index, [program.tensors[index] for index in step.allocate], 1)
        if step.release:
            count(step.index + 1, [program.tensors[index] for index in step.release], -1)
    return {kind: list(accumulate(changes[:step_count])) for kind, changes in change.items()}


def totals(held: MemoryOverTime) -> list[int]:
    """Bytes during each step, of all kinds."""
    return [sum(amounts) for amounts in zip(*held.values(), strict=True)]


def usage(
    program: Program, step_ps: Sequence[int], part: str | None = None, groups: tuple[ProgramTensor, ...] | None = None
) -> Usage:
    """Peak and averages over the steps of the whole network, or of one part of it.

    Parameters
    ----------
    step_ps : how long each step took, with its waiting
    part : counts only steps and tensors of layers of this part; all is zero where the network has none
    groups : `TensorAddresses.groups`
    """
    held = levels(program, part, groups)
    counted = _counted(program, part)
    if not counted:
        return Usage(0, 0, 0, 0, dict.fromkeys(TENSOR_KINDS, 0))
    in_step = totals(held)
    peak = max(counted, key=lambda step: (in_step[step], -step))
    weighted = sum(in_step[step] * step_ps[step] for step in counted)
    return Usage(
        peak_bytes=in_step[peak],
        time_mean_bytes=weighted // max(sum(step_ps[step] for step in counted), 1),
        mean_over_steps_bytes=sum(in_step[step] for step in counted) // len(counted),
        peak_step=peak,
        at_peak={kind: amounts[peak] for kind, amounts in held.items()},
    )


def peak_bytes(program: Program, groups: tuple[ProgramTensor, ...] | None = None) -> int:
    """The most that is allocated at once: `Usage.peak_bytes` of the whole network."""
    in_step = totals(levels(program, None, groups))
    return max((in_step[step] for step in _counted(program, None)), default=0)


def _counted(program: Program, part: str | None) -> list[int]:
    """The steps that count: not the input's, which computes nothing."""
    counting = [step for step in program.steps if step.layer or step.pass_ != "forward"]
    return [step.index for step in counting if part is None or step.part == part]
