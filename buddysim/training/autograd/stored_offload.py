"""Offload of results that recomputed blocks store, as torchtitan's graph trainer does it (``cpu_offload.py``).

A selected result is copied to pinned host memory as soon as it is computed, on a stream of its own. The computations
wait for the copy, and its memory is given back, some blocks later: at the end of that block's forward pass. It is
fetched, on another stream, when the backward pass of a block some blocks before its own begins; what reads it waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from buddysim.training.autograd.records import Direction, HostBuffer, HostCopy, Operand
from buddysim.training.autograd.tape import Tape
from buddysim.training.autograd.tensor import Tensor, TensorStorage


@dataclass
class _Stored:
    """A result of a block.

    Attributes
    ----------
    copied : the copy's operation
    """

    storage: TensorStorage
    operand: Operand
    buffer: int
    copied: int

    @property
    def is_on_host(self) -> bool:
        return self.storage.is_released


class OffloadedResults:
    """The stored results of a step that are on the host for a while.

    Parameters
    ----------
    selected : block, and number among the operators whose results it stores
    defer : blocks after which the memory of a result is given back
    ahead : blocks by which a result is fetched before its own one
    """

    def __init__(self, tape: Tape, selected: Collection[tuple[int, int]], defer: int, ahead: int) -> None:
        self.tape, self.selected = tape, frozenset(selected)
        self.defer, self.ahead = defer, ahead
        self.stored: dict[int, list[_Stored]] = {}

    def store(self, block: int, number: int, result: Tensor) -> None:
        """Copy a result to the host, if it is selected, behind the computation that wrote it.

        Parameters
        ----------
        number : of its operator among those whose results the block stores
        """
        if (block, number) not in self.selected:
            return
        tape, storage = self.tape, result.storage
        operand = Operand(storage.record.number, result.shape, result.strides, result.dtype)
        buffer = len(tape.host_buffers)
        tape.host_buffers.append(HostBuffer(operand.bytes, len(tape.events)))
        copied = self._copy("offload", operand, storage, buffer, tape.last_computation())
        self.stored.setdefault(block, []).append(_Stored(storage, operand, buffer, copied))

    def forward_ends(self, block: int, *, is_last: bool) -> None:
        """Give back the memory of earlier blocks' results; behind the last block, of all."""
        for earlier, stored in self.stored.items():
            if is_last or earlier + self.defer <= block:
                for one in stored:
                    if not one.is_on_host:
                        with self._outside_of_blocks():
                            self.tape.launch("wait", (), (), after=(one.copied,))
                        one.storage.release()

    def backward_begins(self, block: int) -> None:
        """Fetch the results of a block, and of those before it."""
        for number in range(block, block - self.ahead - 1, -1):
            for one in self.stored.pop(number, ()):
                if one.is_on_host:
                    one.storage.restore()
                    self._copy("prefetch", one.operand, one.storage, one.buffer, ())
                    self.tape.host_buffers[one.buffer].freed = len(self.tape.events)

    def _copy(
        self, direction: Direction, operand: Operand, storage: TensorStorage, buffer: int, after: tuple[int, ...]
    ) -> int:
        tensor = Tensor(operand.shape, operand.strides, 0, operand.dtype, storage, direction)
        reads, writes = ((tensor,), ()) if direction == "offload" else ((), (tensor,))
        copy = HostCopy(direction, self.tape.host_buffers[buffer].bytes, buffer)
        with self._outside_of_blocks():
            self.tape.launch(direction, reads, writes, stream=direction, after=after, copy=copy)
        return len(self.tape.operations) - 1

    @contextmanager
    def _outside_of_blocks(self) -> Iterator[None]:
        """Record what isn't done again with a block."""
        cache, self.tape.operator_cache = self.tape.operator_cache, None
        yield
        self.tape.operator_cache = cache
