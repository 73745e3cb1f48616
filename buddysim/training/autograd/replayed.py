"""Results of operators in a region that runs twice: noted when it runs first, given back when it runs again.

Both count what the region allocates and launches, so that the second run can stop where PyTorch's does. A policy says
which results are stored (``create_selective_checkpoint_contexts`` of ``torch/utils/checkpoint.py``): these live until
the operator would run again, or the region ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from buddysim.training.autograd.records import StorageRecord
from buddysim.training.autograd.tensor import Tensor, TensorStorage

if TYPE_CHECKING:
    from buddysim.training.autograd.tape import Tape

#: Whether the results of an operator of that name are stored; called once for each that runs, in order.
KeepResults = Callable[[str], bool]


#: Takes a stored result: the operator's number among those whose results are stored, and its first result.
StoreOnHost = Callable[[int, Tensor], None]


class OperatorStart(NamedTuple):
    """Where an operator of a region begins: its first allocation, or its launch where it allocates nothing."""

    allocation: int | None
    launch: int


class OperatorCache:
    """What a tape asks before it allocates and records.

    Attributes
    ----------
    is_mode : whether PyTorch does it by a dispatch mode, under which some operators aren't in place
        (``isTensorSubclassLike`` is true of every tensor)
    """

    is_mode: bool

    def allocated(self, producer: str) -> TensorStorage | None:
        """Return the memory of a stored result; None: it is allocated anew."""
        raise NotImplementedError

    def launched(self, name: str, writes: Sequence[Tensor]) -> bool:
        """Whether an operator's results are given back, so that it doesn't run."""
        raise NotImplementedError


class NotedResults(OperatorCache):
    """The first run.

    Parameters
    ----------
    offload : is given each operator whose results are stored: its number among them, and its first result

    Attributes
    ----------
    stored : memory of the stored results, by operator and how many of its name came before
    last : where the last operator began
    """

    def __init__(self, tape: Tape, keeps: KeepResults | None, offload: StoreOnHost | None = None) -> None:
        self.tape, self.keeps, self.is_mode = tape, keeps, keeps is not None
        self.offload = offload
        self.computed: tuple[int, Tensor] | None = None
        self.stored_operators = 0
        self.stored: dict[tuple[str, int], list[TensorStorage]] = {}
        self.last = OperatorStart(None, 0)
        self._allocations = self._launches = 0
        self._counts: Counter[str] = Counter()
        self._begun: tuple[str, int, int] | None = None  # producer, its first allocation, that one's storage

    def allocated(self, producer: str) -> None:
        if self._begun is None or self._begun[0] != producer:
            self._begun = producer, self._allocations, len(self.tape.storages)
        self._allocations += 1

    def settle(self) -> None:
        """Hand over a stored result whose operator is recorded by now."""
        computed, self.computed = self.computed, None
        if computed is not None and self.offload is not None:
            self.offload(*computed)

    def launched(self, name: str, writes: Sequence[Tensor]) -> bool:
        self.settle()
        begun = self._begun if self._begun is not None and self._begun[0] == name else None
        self.last = OperatorStart(begun[1] if begun else None, self._launches)
        if self.keeps is not None and self.keeps(name) and begun is not None:
            new = {one.storage.record.number: one.storage for one in writes}
            self.stored[name, self._counts[name]] = [new[number] for number in sorted(new) if number >= begun[2]]
            if self.offload is not None:
                self.computed = self.stored_operators, writes[0]
                self.stored_operators += 1
        self._counts[name] += 1
        self._launches += 1
        self._begun = None
        return False


class ReplayedResults(OperatorCache):
    """The second run.

    Parameters
    ----------
    stop : the operator whose results are needed no more, only what it saves before it runs; None: all run
    """

    def __init__(self, noted: NotedResults, stop: OperatorStart | None) -> None:
        self.tape, self.stored, self.stop = noted.tape, noted.stored, stop
        self.is_mode, self.has_stopped = noted.is_mode, False
        self._allocations = self._launches = 0
        self._counts: Counter[str] = Counter()

    def allocated(self, producer: str) -> TensorStorage | None:
        if self.stop is not None and self._allocations == self.stop.allocation:
            self.has_stopped = True
        if self.has_stopped:
            return self._without_memory(producer)
        self._allocations += 1
        results = self.stored.get((producer, self._counts[producer]))
        return results.pop(0) if results else None

    def launched(self, name: str, writes: Sequence[Tensor]) -> bool:
        if self.stop is not None and self.stop.allocation is None and self._launches == self.stop.launch:
            self.has_stopped = True
        if self.has_stopped:
            return True
        self._launches += 1
        key = name, self._counts[name]
        self._counts[name] += 1
        return self.stored.pop(key, None) is not None

    def _without_memory(self, producer: str) -> TensorStorage:
        """Memory of a result that isn't computed."""
        storage = TensorStorage(self.tape, StorageRecord(-1, 0, "temporary", producer, "", self.tape.phase, 0))
        storage.is_released = True
        return storage
