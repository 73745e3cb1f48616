"""Memory of an iteration, on the GPU and pinned on the host: bytes held, and whether both suffice.

`place` gives every tensor an address from a pool, step by step; `usage` says how much is held, by kind. During a step
the GPU holds all tensors from before, and everything that the step allocates; releases count from the step's end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from buddysim.base.pool import ALIGNMENT, FitPolicy, Pool, PoolExhausted
from buddysim.training.iteration.program import KINDS, Copy, Kind, Program, Step, Tensor, defer

UNLIMITED = 1 << 62  # bytes

Levels = npt.NDArray[np.int64]
Relief = Callable[[Step, PoolExhausted], int | None]


@dataclass(frozen=True)
class Failure:
    """Why an iteration can't run.

    Attributes
    ----------
    where : ``"gpu"`` or ``"host"``
    layer, pass_ : the step at which memory ran out
    kind : of the tensor to be allocated
    requested_bytes, free_bytes, largest_bytes : the request, all free bytes, the largest free piece
    missing_bytes : by how much the memory would have to be larger (or, where only fragmentation is at fault, its
        largest piece) for this request
    """

    where: str
    layer: int
    pass_: str
    kind: str
    requested_bytes: int
    free_bytes: int
    largest_bytes: int
    missing_bytes: int


@dataclass(frozen=True)
class Placement:
    """Addresses of all tensors.

    Attributes
    ----------
    program : the program with its deferred copies launched later
    addresses : by tensor; -1 where it was never placed
    high_water : the highest address in use, in bytes
    failure : None, or the first request that could not be served; nothing after it is placed
    deferred : copies that found no room at first, and how many steps later they were launched
    """

    program: Program
    addresses: tuple[int, ...]
    high_water: int
    failure: Failure | None
    deferred: dict[int, int]


def place(
    program: Program, capacity: int | None, fit: FitPolicy = "best-fit", relief: Relief | None = None
) -> Placement:
    """Runs the iteration's allocations through a pool.

    A map that was to come back during a computation waits for the next step where the pool has no room for it, or where
    it would take the step's workspace its room: `Placement.program` has the copy there. Tensors that a step needs for
    its own computation can't wait.

    Parameters
    ----------
    capacity : bytes of GPU memory; None for as much as it takes
    fit : how the pool picks a free piece
    relief : asked for a smaller workspace where a step's workspace doesn't fit: bytes (0 for none), or None to give up
    """
    return _Placer(program, UNLIMITED if capacity is None else capacity, fit, relief).run()


class _Placer:
    def __init__(self, program: Program, capacity: int, fit: FitPolicy, relief: Relief | None) -> None:
        self.tensors, self.resident, self.relief = program.tensors, program.resident, relief
        self.steps, self.copies = list(program.steps), list(program.copies)  # changed where copies are deferred
        self.pool = Pool(capacity, fit)
        self.addresses = [-1] * len(program.tensors)
        self.deferred: dict[int, int] = {}

    def run(self) -> Placement:
        for done, index in enumerate(self.resident):
            try:
                self._allocate(index)
            except PoolExhausted as short:
                return self._resident_failure(done, short)
        for number in range(len(self.steps)):
            failure = self._step(self.steps[number])
            if failure:
                return self._result(failure)
        return self._result(None)

    def _result(self, failure: Failure | None) -> Placement:
        program = Program(tuple(self.steps), self.tensors, tuple(self.copies), self.resident)
        return Placement(program, tuple(self.addresses), self.pool.high_water, failure, self.deferred)

    def _allocate(self, index: int) -> None:
        self.addresses[index] = self.pool.allocate(self.tensors[index].byte_count)

    def _step(self, step: Step) -> Failure | None:
        may_wait = {self.copies[number].tensor: number for number in step.copies if _may_wait(self.copies[number])}
        for index in step.allocate:
            if index == step.workspace:
                failure = self._workspace(step, index, may_wait)
                if failure:
                    return failure
                continue
            try:
                self._allocate(index)
            except PoolExhausted as short:
                if index not in may_wait:
                    return _failure(self.tensors[index], step.layer, step.pass_, short)
                self._defer(step.index, may_wait.pop(index))
        for index in step.release:
            if self.addresses[index] >= 0:
                self.pool.release(self.addresses[index])
        return None

    def _workspace(self, step: Step, index: int, may_wait: dict[int, int]) -> Failure | None:
        byte_count = self.tensors[index].byte_count
        while byte_count:
            try:
                self.addresses[index] = self.pool.allocate(byte_count)
                return None
            except PoolExhausted as short:
                less = self.relief(step, short) if self.relief else None
                if less is not None:
                    byte_count = less
                elif may_wait:
                    tensor, copy = may_wait.popitem()
                    self.pool.release(self.addresses[tensor])
                    self.addresses[tensor] = -1
                    self._defer(step.index, copy)
                else:
                    return _failure(self.tensors[index], step.layer, step.pass_, short)
        return None

    def _defer(self, number: int, copy: int) -> None:
        step, later = self.steps[number : number + 2]
        self.steps[number], self.steps[number + 1], self.copies[copy] = defer(step, later, self.copies[copy])
        self.deferred[copy] = self.deferred.get(copy, 0) + 1

    def _resident_failure(self, done: int, short: PoolExhausted) -> Placement:
        """Network-wide allocations come as one: the bytes missing are those of all that is left."""
        left = [self.tensors[index] for index in self.resident[done:]]
        wanted = sum(self.pool.rounded(tensor.byte_count) for tensor in left)
        problem = _failure(left[0], left[0].layer, "resident", short)
        return self._result(replace(problem, missing_bytes=wanted - self.pool.free_bytes))


def _may_wait(copy: Copy) -> bool:
    return copy.direction == "prefetch" and copy.timing == "overlapped"


def _failure(tensor: Tensor, layer: int, pass_: str, short: PoolExhausted) -> Failure:
    sizes = short.requested_bytes, short.free_bytes, short.largest_bytes, short.missing_bytes
    return Failure("gpu", layer, pass_, tensor.kind, *sizes)


@dataclass(frozen=True)
class Usage:
    """Memory held on the GPU, over the steps that count.

    Attributes
    ----------
    peak_bytes : the most that is held at once, at the step `peak_step`
    average_bytes : weighted by time
    average_over_layers_bytes : each step counts the same
    at_peak : bytes by kind at the instant of the peak (the first one, where several are as high)
    """

    peak_bytes: int
    average_bytes: int
    average_over_layers_bytes: int
    peak_step: int
    at_peak: dict[Kind, int]


def levels(program: Program, part: str | None = None) -> Levels:
    """Bytes held during each step, by kind: an array of steps x `KINDS`.

    Parameters
    ----------
    part : counts only tensors of layers of this part of the network
    """
    column = {kind: number for number, kind in enumerate(KINDS)}
    change = np.zeros((len(program.steps) + 1, len(KINDS)), dtype=np.int64)

    def count(step: int, index: int, sign: int) -> None:
        tensor = program.tensors[index]
        if part is None or tensor.part == part:
            change[step, column[tensor.kind]] += sign * tensor.byte_count

    for index in program.resident:
        count(0, index, 1)
    for step in program.steps:
        for index in step.allocate:
            count(step.index, index, 1)
        for index in step.release:
            count(step.index + 1, index, -1)
    return change.cumsum(axis=0)[:-1]


def usage(program: Program, step_ps: Levels, part: str | None = None) -> Usage:
    """Peak and averages over the steps of the whole network, or of one part of it.

    Parameters
    ----------
    step_ps : how long each step took, with its waiting
    part : counts only steps and tensors of layers of this part; all is zero where the network has none
    """
    held = levels(program, part)
    counted = np.array(
        [step.index for step in program.steps if step.layer and (part is None or step.part == part)], dtype=np.int64
    )
    if not counted.size:
        return Usage(0, 0, 0, 0, dict.fromkeys(KINDS, 0))
    totals = held.sum(axis=1)[counted]
    peak = int(counted[int(totals.argmax())])
    time = [int(step_ps[step]) for step in counted]
    weighted = sum(int(total) * ps for total, ps in zip(totals, time, strict=True))  # exceeds 64 bits
    return Usage(
        peak_bytes=int(totals.max()),
        average_bytes=weighted // max(sum(time), 1),
        average_over_layers_bytes=int(totals.sum()) // len(counted),
        peak_step=peak,
        at_peak={kind: int(held[peak, column]) for column, kind in enumerate(KINDS)},
    )


def least_bytes(program: Program, *, workspace: bool = True) -> int:
    """The least GPU memory that can hold the iteration, however the pool places it and whichever copies wait.

    The most that lives at once, rounded up to the pool's alignment, where each map comes back only when it is read.

    Parameters
    ----------
    workspace : False leaves out the workspace of CONV algorithms
    """
    size = [
        -(-tensor.byte_count // ALIGNMENT) * ALIGNMENT if workspace or tensor.kind != "workspace" else 0
        for tensor in program.tensors
    ]
    change = [0] * (len(program.steps) + 1)
    waiting: dict[int, int] = {}
    for step in program.steps:
        for copy in (program.copies[index] for index in step.copies):
            if _may_wait(copy):
                waiting[copy.tensor] = size[copy.tensor]
        for index in step.allocate:
            change[step.index] += 0 if index in waiting else size[index]
        for index in {*step.reads, *step.writes, *step.release} & waiting.keys():
            change[step.index] += waiting.pop(index)
        for index in step.release:
            change[step.index + 1] -= size[index]
    resident = sum(size[index] for index in program.resident)
    return resident + max(accumulate(change))


def host_pinned(program: Program) -> tuple[int, int]:
    """The most pinned host memory in use at once, in bytes, and the step at which it is reached.

    A region is pinned when an offload is launched and given back when its prefetch is over (vDNN, Section III-B).
    It has the map's uncompressed size, which is known before the copy.
    """
    held = most = at = 0
    for step in program.steps:
        for index in step.copies:
            if program.copies[index].direction == "offload":
                held += program.copies[index].byte_count
        if held > most:
            most, at = held, step.index
        for index in step.copies:
            if program.copies[index].direction == "prefetch":
                held -= program.copies[index].byte_count
    return most, at


def host_failure(program: Program, bound: int) -> Failure | None:
    """The first offload that the host's pinned memory has no room for."""
    most, _ = host_pinned(program)
    if most <= bound:
        return None
    held = 0
    for step in program.steps:
        for index in step.copies:
            copy = program.copies[index]
            held += copy.byte_count if copy.direction == "offload" else -copy.byte_count
            if held > bound:
                free = bound - (held - copy.byte_count)
                return Failure(
                    "host", copy.layer, step.pass_, "feature_maps", copy.byte_count, free, free, most - bound
                )
    raise AssertionError("the most that is held exceeds the bound at no copy")
