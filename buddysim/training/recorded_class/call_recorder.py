"""Records what one operator allocates, launches and saves."""

from __future__ import annotations

from typing import Any

import torch

from buddysim.training.autograd.records import AllocationEvent, FreeEvent
from buddysim.training.autograd.tape import Tape
from buddysim.training.networks.from_torch.step_recorder import Packed, StepRecorder, dtype_of
from buddysim.training.networks.from_torch.untouched_memory import UntouchedMemory
from buddysim.training.recorded_class.forms import Allocated, Event, Form, Freed, Launched, Part

#: The key at which PyTorch notes that a tensor is a view.
_VIEWS = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
#: The storage of tensors without elements.
_EMPTY = -(1 << 30)


class CallRecorder(StepRecorder):
    """Notes at which event each tensor is saved."""

    def __init__(self, tape: Tape, memory: UntouchedMemory) -> None:
        super().__init__(tape, memory)
        self.positions: dict[int, int] = {}

    def resume(self) -> None:
        """Take allocations again."""
        self.memory.on_allocation = self._allocated

    def argument(self, form: Form, *, in_place: bool) -> torch.Tensor:
        """Return a tensor of a form; one that is changed in place can't be a leaf."""
        with self.setup("input", ""):
            dtype = getattr(torch, form.dtype.name)
            with torch._C._ExcludeDispatchKeyGuard(_VIEWS):  # not a view of its memory
                made = self.memory.allocate(form.shape, form.strides, dtype)
            if form.needs_gradient:
                made.requires_grad_()
                made = made.clone() if in_place else made
            return made

    def number(self, tensor: torch.Tensor) -> int:
        """Return the number of a tensor's storage."""
        return self._storage(tensor).record.number

    def part(self, tensor: torch.Tensor, producer: str = "") -> Part:
        """Return where a tensor lies."""
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        if not tensor.numel():
            return Part(_EMPTY, 0, shape, strides, dtype_of(tensor), "", False)
        storage = self._storage(tensor).record
        return Part(
            storage.number, tensor.storage_offset(), shape, strides, dtype_of(tensor),
            producer or self.producer_of(tensor), tensor._is_view(),
        )  # fmt: skip

    def pack(self, tensor: torch.Tensor) -> Packed:
        packed = super().pack(tensor)
        self.positions[packed.number] = len(self.tape.events)
        return packed

    def position(self, packed: Packed, node: Any) -> int:
        """Return the event before which a tensor counts as saved: behind the operation of its node."""
        operation = self._operations_of_nodes.get(node._sequence_nr())
        position = self.positions[packed.number]
        if operation is None:
            return position
        return max(position, self.tape.events.index(self.tape.operations[operation]) + 1)

    def events(self, begin: int, end: int) -> list[Event]:
        """Return what happened, of all storages."""
        made: list[Event] = []
        for event in self.tape.events[begin:end]:
            if isinstance(event, AllocationEvent):
                made.append(Allocated(event.storage, event.bytes, self.tape.storages[event.storage].producer))
            elif isinstance(event, FreeEvent):
                made.append(Freed(event.storage))
            else:
                made.append(Launched(event))
        return made
