"""The record of one or more training steps, and the state in which operators run.

A tape is a context; within it, tensors are made and operators recorded::

    with Tape() as tape:
        weight = Parameter((8, 4))
        loss = functional.linear(tape.input((2, 4)), weight).sum()
        loss.backward()
    tape.peak_bytes()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from math import prod
from typing import TYPE_CHECKING

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.dtypes import DType, float32, int64
from buddysim.training.autograd.layout import Shape, contiguous_strides
from buddysim.training.autograd.records import (
    AllocationEvent,
    Collective,
    Event,
    FreeEvent,
    HostBuffer,
    HostCopy,
    HostTask,
    Kind,
    Operand,
    Phase,
    Product,
    SavedTensor,
    StorageRecord,
    Stream,
    TracedOperation,
)
from buddysim.training.autograd.tensor import Tensor, TensorStorage

if TYPE_CHECKING:
    from buddysim.training.autograd.autocast import Autocast
    from buddysim.training.autograd.node import GraphNode
    from buddysim.training.autograd.replayed import OperatorCache
    from buddysim.training.autograd.saved_hooks import SavedTensorHooks

_ACTIVE: ContextVar[Tape] = ContextVar("tape")


class Tape:
    """Allocations, frees, operations and saved tensors, in order.

    Parameters
    ----------
    default_dtype : of parameters that name none

    Attributes
    ----------
    events : `AllocationEvent`, `FreeEvent` and `TracedOperation`, in the order in which they happen
    operations : the events that are operations
    storages : by number
    saved : in the order in which autograd saves them, steps one after the other
    saved_hooks : what is done to tensors that autograd saves; None: nothing
    operator_cache : what notes and gives back results of operators, in regions that are recomputed; None outside
    compiled : whether it is what compiled code does
    host_buffers : pinned host memory, by number
    host_bytes : of host memory that weights, gradients and optimizer state take throughout
    running_node : of the backward pass
    after_node : what is called once when that node has run
    after_backward : what is called once at the end of the backward pass that runs
    """

    def __init__(self, default_dtype: DType = float32) -> None:
        self.default_dtype = default_dtype
        self.events: list[Event] = []
        self.operations: list[TracedOperation] = []
        self.storages: list[StorageRecord] = []
        self.saved: list[SavedTensor] = []
        self.phase: Phase = "setup"
        self.scope = ""
        self.node = ""
        self.views = 0
        self.micro_step, self.times = 0, 1  # of the operations that follow
        self.grad_enabled = True
        self.autocast: Autocast | None = None
        self.sequence = 0
        self.recording = True
        self.saved_hooks: SavedTensorHooks | None = None
        self.operator_cache: OperatorCache | None = None
        self.compiled = False
        self.host_buffers: list[HostBuffer] = []
        self.host_bytes = 0
        self.running_node: GraphNode | None = None
        self.after_node: list[Callable[[], None]] = []
        self.after_backward: list[Callable[[], None]] = []
        self._token: Token[Tape] | None = None

    def __enter__(self) -> Tape:
        self._token = _ACTIVE.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        """End the record: what is freed from now on isn't noted."""
        self.recording = False
        if self._token is not None:
            _ACTIVE.reset(self._token)

    def empty(
        self,
        shape: Shape,
        dtype: DType,
        producer: str,
        strides: Shape | None = None,
        kind: Kind = "temporary",
        label: str = "",
    ) -> Tensor:
        """Allocate a tensor.

        Parameters
        ----------
        strides : of a dense layout; contiguous if not given
        label : name of a parameter, buffer or input
        """
        size = prod(shape) * dtype.size
        storage = None if self.operator_cache is None else self.operator_cache.allocated(producer)
        if storage is None:
            storage = self.allocate(size, producer, kind, label)
        return Tensor(shape, contiguous_strides(shape) if strides is None else strides, 0, dtype, storage, producer)

    def allocate(self, size: int, producer: str, kind: Kind = "temporary", label: str = "") -> TensorStorage:
        """Allocate a storage of `size` bytes."""
        return TensorStorage(self, self.record(size, producer, kind, label))

    def record(self, size: int, producer: str, kind: Kind, label: str) -> StorageRecord:
        """Note an allocation."""
        number = len(self.storages)
        record = StorageRecord(number, size, kind, producer, self.scope, self.phase, len(self.events), label=label)
        self.storages.append(record)
        self.events.append(AllocationEvent(number, size))
        return record

    def settle(self) -> None:
        """Forget what was allocated and is freed already, before the first operation.

        A model is built whole, and then its weights are replaced by shards or quantised; PyTorch does so without memory
        (on the device ``meta``), or weight by weight.
        """
        self.storages = [one for one in self.storages if one.freed is None]
        for number, record in enumerate(self.storages):
            record.number = record.allocated = number
        self.events = [AllocationEvent(one.number, one.bytes) for one in self.storages]

    def freed(self, record: StorageRecord) -> None:
        """Note that a storage's last tensor is gone."""
        if self.recording:
            record.freed = len(self.events)
            self.events.append(FreeEvent(record.number, record.bytes))

    def made_before(self, records: Sequence[StorageRecord]) -> None:
        """Note that storages were there before the first step, where only a step shows which, and how large."""
        numbers = {one.number for one in records}
        moved: list[Event] = [AllocationEvent(one.number, one.bytes) for one in records]
        rest = [one for one in self.events if not (isinstance(one, AllocationEvent) and one.storage in numbers)]
        begin = next(
            (
                number
                for number, one in enumerate(rest)
                if not (isinstance(one, AllocationEvent) and self.storages[one.storage].phase == "setup")
            ),
            len(rest),
        )
        for record in records:
            record.phase, record.scope = "setup", ""
        self.events[:] = [*rest[:begin], *moved, *rest[begin:]]
        for number, event in enumerate(self.events):
            if isinstance(event, AllocationEvent):
                self.storages[event.storage].allocated = number
            elif isinstance(event, FreeEvent):
                self.storages[event.storage].freed = number

    def launch(
        self,
        name: str,
        reads: Sequence[Tensor],
        writes: Sequence[Tensor],
        products: tuple[Product, ...] = (),
        flops: int = 0,
        stream: Stream = "compute",
        collective: Collective | None = None,
        after: tuple[int, ...] = (),
        copy: HostCopy | None = None,
        task: HostTask | None = None,
    ) -> None:
        """Record an operation; it is the producer of what it writes, in place as well.

        Parameters
        ----------
        flops : of operations that aren't matrix products alone; those of `products` are added
        stream, collective, after, copy, task : see `TracedOperation`
        """
        for product in products:
            flops += product.flops
        for one in writes:
            one.producer = name
        if self.operator_cache is not None and self.operator_cache.launched(name, writes):
            return
        operation = TracedOperation(
            len(self.operations),
            name,
            self.scope,
            self.phase,
            self.node,
            tuple([Operand(one.storage.record.number, one.shape, one.strides, one.dtype) for one in reads]),
            tuple([Operand(one.storage.record.number, one.shape, one.strides, one.dtype) for one in writes]),
            products,
            flops,
            self.views,
            stream,
            collective,
            self.micro_step,
            self.times,
            after,
            copy,
            task,
        )
        self.views = 0
        self.operations.append(operation)
        self.events.append(operation)

    def last_computation(self) -> tuple[int, ...]:
        """Index of the last operation that computes, in a tuple; an empty one before the first."""
        for operation in reversed(self.operations):
            if operation.stream == "compute" and operation.name != "wait":
                return (operation.index,)
        return ()

    def input(self, shape: Shape, dtype: DType = int64, label: str = "") -> Tensor:
        """A tensor of the batch: token numbers, labels, images."""
        return self.empty(shape, dtype, "input", kind="input", label=label)

    def buffer(self, shape: Shape, dtype: DType = float32, label: str = "") -> Tensor:
        """A tensor of a module that isn't trained."""
        return self.empty(shape, dtype, "buffer", kind="buffer", label=label)

    @contextmanager
    def in_phase(self, phase: Phase) -> Iterator[None]:
        """Record what happens within as of a phase."""
        before, self.phase = self.phase, phase
        try:
            yield
        finally:
            self.phase = before

    @contextmanager
    def in_scope(self, scope: str) -> Iterator[None]:
        """Record what happens within as of a module."""
        before, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = before

    @contextmanager
    def no_grad(self) -> Iterator[None]:
        """Save nothing within."""
        before, self.grad_enabled = self.grad_enabled, False
        try:
            yield
        finally:
            self.grad_enabled = before

    @property
    def in_dispatch_mode(self) -> bool:
        """Whether PyTorch would run under a dispatch mode."""
        return self.operator_cache is not None and self.operator_cache.is_mode

    def lower(self, tensor: Tensor) -> Tensor:
        """A tensor cast as inputs of products are, under autocast."""
        return tensor if self.autocast is None else self.autocast.cast(tensor, self.autocast.dtype)

    def single(self, tensor: Tensor) -> Tensor:
        """A tensor cast to single precision, as inputs of CUDA's second list are, under autocast."""
        return tensor if self.autocast is None else self.autocast.cast(tensor, float32)

    def single_type(self, tensor: Tensor) -> DType | None:
        """Single precision under autocast, for operators that name a type where the caller names none."""
        return float32 if self.autocast is not None and self.autocast.casts(tensor) else None

    def live_bytes(self) -> Iterator[int]:
        """Bytes that live after each event."""
        live = 0
        for event in self.events:
            if isinstance(event, AllocationEvent):
                live += event.bytes
            elif isinstance(event, FreeEvent):
                live -= event.bytes
            yield live

    def peak_bytes(self) -> int:
        """The largest number of bytes that live at one time."""
        return max(self.live_bytes(), default=0)


def active_tape() -> Tape:
    """The tape whose context this is.

    Raises
    ------
    BuddysimError
        outside of one
    """
    tape = _ACTIVE.get(None)
    if tape is None:
        raise BuddysimError("no tape: expected a call within `with Tape():`")
    return tape
