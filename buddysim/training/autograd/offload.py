"""Offload of saved tensors to pinned host memory while the model runs, as torchtune's `OffloadActivations` does it.

(``torchtune/training/_activation_offloading.py``.) When autograd saves a tensor, it is copied out on a stream of its
own, behind all computations so far. The last few are held on the GPU: those before them are given up once the
computations wait for their copies. A tensor is copied back when its node runs, and the node waits for it. It lives
until the next node that reads an offloaded tensor has run, and the stream of copies then waits for that node. So a copy
back overlaps with one node at most. Without streams, copies run between the computations.

`save_on_cpu` is the same without streams for all that is saved, views of weights too; the host waits for each copy out.

Else weights are never offloaded, nor views of them: torchtune's test, which looks at the tensor alone, would offload
the transposed weight that a product saves (TRL's version of the class looks at storages too).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from buddysim.training.autograd.dtypes import DType
from buddysim.training.autograd.layout import Shape, is_dense
from buddysim.training.autograd.records import Direction, HostBuffer, HostCopy
from buddysim.training.autograd.saved_hooks import SavedTensorHooks
from buddysim.training.autograd.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from buddysim.training.autograd.node import GraphNode
    from buddysim.training.autograd.tape import Tape


@dataclass(frozen=True)
class OffloadSettings:
    """How saved tensors are offloaded.

    Attributes
    ----------
    streams : of copies: 0: they run between the computations; 1: both directions share one; 2: each its own
    stash : offloaded tensors that the GPU holds until a later one is offloaded
    min_bytes : smaller tensors stay
    blocking : the host waits for each copy out, and weights are copied too: `torch.autograd.graph.save_on_cpu`
    """

    streams: int = 1
    stash: int = 5
    min_bytes: int = 1024
    blocking: bool = False


class _Offloaded(NamedTuple):
    """A tensor in host memory: its layout, its buffer."""

    number: int
    shape: Shape
    strides: Shape | None
    dtype: DType
    buffer: int


class OffloadedTensors(SavedTensorHooks):
    """Copies what autograd saves to the host, and back.

    Parameters
    ----------
    selects : whether what is saved in a module is offloaded, by the module's scope
    """

    def __init__(self, tape: Tape, settings: OffloadSettings, selects: Callable[[str], bool]) -> None:
        self.tape, self.settings, self.selects = tape, settings, selects
        self.count = 0
        self.leaving: dict[int, tuple[Tensor, int]] = {}  # by number: still on the GPU, and its copy's operation
        self.arrived: dict[int, Tensor] = {}
        self.done: dict[int, int] = {}  # by number: the computation behind which a tensor isn't read any more
        self.copies_wait_for: list[int] = []
        self.last_copy: int | None = None
        self.node: GraphNode | None = None

    def pack(self, tensor: Tensor, before: bool) -> Tensor | _Offloaded:
        self.count += 1
        if not self._is_offloaded(tensor):
            return tensor.detach() if not before else tensor
        size = prod(tensor.shape) * tensor.dtype.size
        for number in [one for one in self.leaving if one <= self.count - self.settings.stash]:
            self._give_up(number)
        buffer = len(self.tape.host_buffers)
        self.tape.host_buffers.append(HostBuffer(size, len(self.tape.events)))
        behind = self._last_computation(before)
        copied = self._copy("offload", tensor, size, buffer, behind)
        if self.settings.streams:
            self.leaving[self.count] = tensor.detach(), copied
        return _Offloaded(self.count, tensor.shape, self._layout(tensor), tensor.dtype, buffer)

    def unpack(self, packed: Tensor | _Offloaded) -> Tensor:
        if isinstance(packed, Tensor):
            return packed
        tape = self.tape
        buffer = tape.host_buffers[packed.buffer]
        if packed.number in self.leaving:
            buffer.freed = len(tape.events)
            tensor = self.leaving[packed.number][0]
            self._behind_node(packed.number, None, 0)
            return tensor
        tensor = tape.empty(packed.shape, packed.dtype, "prefetch", packed.strides, kind="activation")
        copied = self._copy("prefetch", tensor, buffer.bytes, packed.buffer, ())
        buffer.freed = len(tape.events)
        if self.settings.streams:
            tape.launch("wait", (), (), after=(copied,))
            self.arrived[packed.number] = tensor
            self._behind_node(packed.number, tensor, sys.getrefcount(tensor.storage))
        return tensor

    def _is_offloaded(self, tensor: Tensor) -> bool:
        size = prod(tensor.shape) * tensor.dtype.size
        kind = tensor.storage.record.kind
        is_weight = kind in ("parameter", "buffer", "gathered")
        is_weight = is_weight and not self.settings.blocking
        return size >= max(1, self.settings.min_bytes) and not is_weight and self.selects(self.tape.scope)

    def _layout(self, tensor: Tensor) -> Shape | None:
        """The layout that ``empty_like`` gives: that of a dense tensor, else the contiguous one.

        `save_on_cpu` makes a contiguous tensor.
        """
        return tensor.strides if is_dense(tensor.shape, tensor.strides) and not self.settings.blocking else None

    def _last_computation(self, before: bool) -> tuple[int, ...]:
        """The computation that a copy follows: of what is saved before an operation runs, the one before."""
        skipped = before
        for operation in reversed(self.tape.operations):
            if operation.stream == "compute" and operation.name != "wait":
                if not skipped:
                    return (operation.index,)
                skipped = False
        return ()

    def _copy(self, direction: Direction, tensor: Tensor, size: int, buffer: int, after: tuple[int, ...]) -> int:
        """Record a copy; return its operation's index."""
        tape, streams = self.tape, self.settings.streams
        moved = HostCopy(direction, size, buffer, self.settings.blocking and direction == "offload")
        reads = (tensor,) if direction == "offload" else ()
        writes = () if direction == "offload" else (tensor,)
        if not streams:
            tape.launch(direction, reads, writes, copy=moved)
            return len(tape.operations) - 1
        after = (*after, *self.copies_wait_for)
        if streams == 1 and self.last_copy is not None:
            after = (*after, self.last_copy)
        self.copies_wait_for = []
        tape.launch(direction, reads, writes, stream=direction, after=after, copy=moved)
        self.last_copy = len(tape.operations) - 1
        return self.last_copy

    def _give_up(self, number: int) -> None:
        """Let the computations wait for a copy to the host, and drop the tensor."""
        self.tape.launch("wait", (), (), after=(self.leaving[number][1],))
        del self.leaving[number]

    def _behind_node(self, number: int, tensor: Tensor | None, references: int) -> None:
        """What happens when the node that reads a tensor has run."""
        node = self.tape.running_node
        earlier = list(self.arrived) if node is not self.node else []
        earlier = [one for one in earlier if one != number]
        self.node = node
        if tensor is None and not earlier and not self.leaving:
            return

        def act() -> None:
            if number in self.arrived:
                if sys.getrefcount(self.arrived[number].storage) > references:
                    del self.arrived[number]  # read beyond the node: `record_stream`
                else:
                    self.done[number] = len(self.tape.operations) - 1
            for one in list(self.leaving):
                self._give_up(one)
            for one in earlier:
                if one in self.arrived and one in self.done:
                    self.copies_wait_for.append(self.done.pop(one))
                    del self.arrived[one]

        self.tape.after_node.append(act)
        if self._finish not in self.tape.after_backward:
            self.tape.after_backward.append(self._finish)

    def _finish(self) -> None:
        """Drop what is left at the end of the backward pass."""
        self.arrived.clear()
        self.done.clear()
        self.node = None
