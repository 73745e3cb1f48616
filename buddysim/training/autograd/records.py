"""What a tape consists of: storages, allocations and frees in order, operations, saved tensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple

from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.layout import Shape

#: `recompute` is forward work that the backward pass repeats.
Phase = Literal["setup", "forward", "recompute", "backward", "optimizer"]
#: What a storage is for; `master` is an fp32 copy of a weight, `activation` is what autograd saves, `gathered` are
#: weights put together from the shards of several GPUs or fetched from the host, `bucket` is what gradients are reduced
#: in, `held` is what a script has from before the step, `temporary` is all else.
Kind = Literal[
    "parameter",
    "buffer",
    "input",
    "optimizer",
    "master",
    "gradient",
    "activation",
    "gathered",
    "bucket",
    "held",
    "temporary",
]
#: Producer of memory that a CUDA kernel has for itself, and the CPU's kernel has not.
CUDA_SCRATCH = "scratch"
#: Queue in which the GPU runs an operation; operations of one run in their order.
Stream = Literal["compute", "offload", "prefetch", "gather", "reduce", "host", "nvme"]
Direction = Literal["offload", "prefetch"]
HostTaskKind = Literal["update", "nvme_read", "nvme_write"]
CollectiveKind = Literal["all_gather", "reduce_scatter", "all_reduce", "reduce", "broadcast"]


class Operand(NamedTuple):
    """A tensor that an operation reads or writes."""

    storage: int
    shape: Shape
    strides: Shape
    dtype: DType

    @property
    def bytes(self) -> int:
        """Bytes in memory: repeated extents (stride 0) once."""
        if 0 not in self.strides:
            return self.dtype.size * prod(self.shape)
        return self.dtype.size * prod(
            extent for extent, stride in zip(self.shape, self.strides, strict=True) if stride or extent < 2
        )


class Product(NamedTuple):
    """Matrix products of one size: `batch` times m by k with k by n."""

    m: int
    n: int
    k: int
    batch: int

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k * self.batch


class Collective(NamedTuple):
    """What GPUs do together.

    Attributes
    ----------
    bytes : of the whole tensor: what an all-gather gives, what a reduce-scatter takes
    gpus : that take part
    """

    kind: CollectiveKind
    bytes: int
    gpus: int


class HostCopy(NamedTuple):
    """A copy of a tensor to pinned host memory, or back.

    Attributes
    ----------
    bytes : that cross the link
    buffer : number of the host's memory in `Tape.host_buffers`
    blocking : the host waits for its end before it launches anything else
    """

    direction: Direction
    bytes: int
    buffer: int
    blocking: bool = False


class HostTask(NamedTuple):
    """Work beyond the GPU: of the host's processor, or of its NVMe drives.

    Attributes
    ----------
    bytes : that an update reads and writes in host memory, or that the drives read or write
    """

    kind: HostTaskKind
    bytes: int


@dataclass(slots=True, eq=False)
class HostBuffer:
    """Pinned host memory from its allocation to its end.

    Attributes
    ----------
    allocated, freed : index in the tape's events; `freed` is None while it lives
    lasts : it is there throughout, and counted in `Tape.host_bytes`
    """

    bytes: int
    allocated: int
    freed: int | None = None
    lasts: bool = False


@dataclass(slots=True, eq=False)
class StorageRecord:
    """A storage from its allocation to its end.

    Attributes
    ----------
    bytes : as requested, without an allocator's rounding
    producer : operator that allocates it, by PyTorch's name
    scope : of the module in which it was allocated
    allocated, freed : index in the tape's events; `freed` is None while it lives
    """

    number: int
    bytes: int
    kind: Kind
    producer: str
    scope: str
    phase: Phase
    allocated: int
    freed: int | None = None
    label: str = ""


@dataclass(slots=True, eq=False)
class AllocationEvent:
    """A storage is allocated."""

    storage: int
    bytes: int


@dataclass(slots=True, eq=False)
class FreeEvent:
    """A storage's last tensor is gone."""

    storage: int
    bytes: int


@dataclass(slots=True, eq=False)
class TracedOperation:
    """A kernel, or a few that belong together, by the name of PyTorch's operator.

    Attributes
    ----------
    scope : module, ``"model.layers.0.mlp.up_proj"``; of a backward operation, that of the forward one
    node : formula of autograd that runs it, ``"MmBackward0"``; empty in the forward pass
    views : operators without a kernel since the last operation: they cost the host time alone
    stream : an operation waits for all earlier ones that write what it reads, and for its stream; one of the name
        ``wait`` does nothing but wait, as an event does
    after : indices of operations that it waits for in addition (CUDA events)
    copy : of what it moves over the host link
    task : of the host, where it is one
    collective : of communication between GPUs
    micro_step : of the iteration, from 0 on; 0 without accumulation
    times : how often it runs in an iteration, where equal micro-steps are recorded once
    """

    index: int
    name: str
    scope: str
    phase: Phase
    node: str
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    products: tuple[Product, ...]
    flops: int
    views: int
    stream: Stream = "compute"
    collective: Collective | None = None
    micro_step: int = 0
    times: int = 1
    after: tuple[int, ...] = ()
    copy: HostCopy | None = None
    task: HostTask | None = None

    @property
    def bytes_read(self) -> int:
        return sum(operand.bytes for operand in self.reads)

    @property
    def bytes_written(self) -> int:
        return sum(operand.bytes for operand in self.writes)


Event = AllocationEvent | FreeEvent | TracedOperation


@dataclass(slots=True, eq=False)
class SavedTensor:
    """A tensor that autograd saves for the backward pass.

    Attributes
    ----------
    node : formula that saves it, ``"MulBackward0"``
    name : in the formula, ``"other"``
    storage : number of its storage
    producer : operator that returned it (a view's own name); ``"parameter"``, ``"buffer"``, ``"input"``
    scope : module in which it is saved
    operation : index of the last operation of what saves it, so far
    """

    node: str
    name: str
    shape: Shape
    strides: Shape
    dtype: DType
    storage: int
    producer: str
    scope: str
    operation: int

    @property
    def bytes(self) -> int:
        """Bytes of its elements, were it dense."""
        return prod(self.shape) * self.dtype.size
