"""Figures of a plan's groups, read from the record of its step."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from buddysim.training.autograd.records import FreeEvent, StorageRecord, TracedOperation
from buddysim.training.cost.operators.host import LaunchQueue
from buddysim.training.fitting.facts import GroupFacts, TimeBound
from buddysim.training.iteration.program import copy_ps
from buddysim.training.iteration.recorded_tasks import pinned_size
from buddysim.training.networks.recorded.work import work_of

if TYPE_CHECKING:
    from buddysim.machine.training_table import HostLinkConfig
    from buddysim.training.autograd.tape import Tape
    from buddysim.training.cost import CostModel
    from buddysim.training.cost.host_rates import HostRates

#: Storages that every plan of a placement holds at the same points of a step.
_OF_EVERY_PLAN = ("parameter", "buffer", "master", "optimizer", "gradient", "input", "bucket")


class _Kernel(NamedTuple):
    group: int | None
    phase: str
    host_ps: int
    gpu_ps: int


def recorded_facts(
    tape: Tape, blocks: Sequence[str], cost: CostModel, link: HostLinkConfig, host: HostRates, *, late: bool = False
) -> GroupFacts:
    """Return the figures of a recorded step.

    Parameters
    ----------
    blocks : paths of the groups' modules
    late : the host updates with the gradients of the step before, and waits for none of this one
    """
    group_of = _group_finder(blocks)
    kernels = [one for one in (_kernel(operation, tape, cost, group_of) for operation in tape.operations) if one]
    held, others = _bytes_at_starts(tape, len(blocks), group_of)
    copied = _copies(tape, len(blocks), link, group_of)
    is_repeated = any(one.micro_step or one.times > 1 for one in tape.operations)
    forward = 0 if late or is_repeated else sum(one.gpu_ps for one in kernels if one.phase == "forward")
    update = sum(one.gpu_ps for one in kernels if one.phase == "optimizer")
    return GroupFacts(
        held, others, _head_bytes(tape, group_of), _update_bytes(tape),
        _by_group(kernels, len(blocks), "gpu_ps"), _by_group(kernels, len(blocks), "host_ps"),
        copied["offload"], copied["prefetch"], _pinned_bytes(tape, len(blocks), group_of), tape.host_bytes,
        forward, update,
        (*_queue_bounds(kernels, len(blocks), is_repeated), *_stream_bounds(tape, link, host, forward)),
    )  # fmt: skip


def _group_finder(blocks: Sequence[str]) -> Callable[[str], int | None]:
    known: dict[str, int | None] = {}

    def group_of(scope: str) -> int | None:
        if scope not in known:
            inside = (number for number, path in enumerate(blocks) if f"{scope}.".startswith(f"{path}."))
            known[scope] = next(inside, None)
        return known[scope]

    return group_of


def _kernel(
    operation: TracedOperation, tape: Tape, cost: CostModel, group_of: Callable[[str], int | None]
) -> _Kernel | None:
    """An operation of the compute stream that the GPU runs; None for others."""
    is_task = operation.stream != "compute" or operation.copy is not None or operation.collective is not None
    if is_task or operation.name == "wait" or operation.phase == "setup":
        return None
    work, times = work_of(operation, tape.compiled), operation.times
    host, gpu = times * cost.launch_ps(work), times * cost.operation_ps(work)
    return _Kernel(group_of(operation.scope), operation.phase, host, gpu)


def _by_group(kernels: Sequence[_Kernel], groups: int, part: str) -> tuple[int, ...]:
    sums = [0] * groups
    for one in kernels:
        if one.group is not None:
            sums[one.group] += getattr(one, part)
    return tuple(sums)


def _copies(
    tape: Tape, groups: int, link: HostLinkConfig, group_of: Callable[[str], int | None]
) -> dict[str, tuple[int, ...]]:
    """Time of copies of saved tensors, by direction and group; those of weights and gradients left out."""
    spent = {"offload": [0] * groups, "prefetch": [0] * groups}
    rates = {"offload": link.offload_bytes_per_s, "prefetch": link.prefetch_bytes_per_s}
    group_of_buffer: dict[int, int | None] = {}
    for one in tape.operations:
        if one.copy is None or tape.host_buffers[one.copy.buffer].lasts:
            continue
        group = group_of_buffer.setdefault(one.copy.buffer, group_of(one.scope))
        if group is not None:
            duration = copy_ps(one.copy.bytes, rates[one.copy.direction], link.latency_ps)
            spent[one.copy.direction][group] += one.times * duration
    return {direction: tuple(times) for direction, times in spent.items()}


def _pinned_bytes(tape: Tape, groups: int, group_of: Callable[[str], int | None]) -> tuple[int, ...]:
    sums = [0] * groups
    for one in tape.operations:
        is_offload = one.copy is not None and one.copy.direction == "offload"
        if is_offload and one.copy is not None and not tape.host_buffers[one.copy.buffer].lasts:
            group = group_of(one.scope)
            if group is not None:
                sums[group] += pinned_size(one.copy.bytes)
    return tuple(sums)


def _bytes_at_starts(
    tape: Tape, groups: int, group_of: Callable[[str], int | None]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Bytes that each group holds for its backward pass, and what every plan holds at the start of that."""
    starts: dict[int, int] = {}
    for position, event in enumerate(tape.events):
        if isinstance(event, TracedOperation) and event.phase == "backward":
            group = group_of(event.scope)
            if group is not None:
                starts.setdefault(group, position)
    savers: defaultdict[int, set[int | None]] = defaultdict(set)
    for saved in tape.saved:
        savers[saved.storage].add(group_of(saved.scope))
    left = {operand.storage for one in tape.operations if one.copy is not None for operand in one.reads}
    first = min(starts.values(), default=0)
    points = sorted((position, group) for group, position in starts.items())
    positions = [position for position, _ in points]
    held, changes = [0] * groups, [0] * (len(points) + 1)
    for record in tape.storages:
        if record.kind in _OF_EVERY_PLAN:
            begin = bisect_right(positions, record.allocated)
            end = len(points) if record.freed is None else bisect_right(positions, record.freed)
            changes[begin] += record.bytes
            changes[end] -= record.bytes
        elif record.phase == "forward" and record.allocated < first and record.number not in left:
            group = _only_saver(record, savers[record.number], group_of)
            if group is not None and (record.freed is None or record.freed > starts.get(group, first)):
                held[group] += record.bytes
    others, total = [0] * groups, 0
    for (_, group), change in zip(points, changes, strict=False):
        total += change
        others[group] = total
    return tuple(held), tuple(others)


def _only_saver(record: StorageRecord, savers: set[int | None], group_of: Callable[[str], int | None]) -> int | None:
    """The group that alone decides about a storage; None where several do."""
    if len(savers) > 1:
        return None
    return next(iter(savers)) if savers else group_of(record.scope)


def _head_bytes(tape: Tape, group_of: Callable[[str], int | None]) -> int:
    """The most that lives of no group's storages, between the last group's forward pass and the first backward pass."""
    counted = [one.kind in _OF_EVERY_PLAN or group_of(one.scope) is None for one in tape.storages]
    for saved in tape.saved:
        if group_of(saved.scope) is not None and tape.storages[saved.storage].kind not in _OF_EVERY_PLAN:
            counted[saved.storage] = False
    live = peak = 0
    for event in tape.events:
        if isinstance(event, TracedOperation):
            in_group = group_of(event.scope) is not None
            if in_group and event.phase == "backward":
                break
            peak = 0 if in_group else max(peak, live)
        elif counted[event.storage]:
            live += -event.bytes if isinstance(event, FreeEvent) else event.bytes
    return peak


def _update_bytes(tape: Tape) -> int:
    """The most that lives in the update of what every plan holds, and of the update's own."""
    counted = [one.kind in _OF_EVERY_PLAN or one.phase == "optimizer" for one in tape.storages]
    live = peak = 0
    updates = False
    for event in tape.events:
        if isinstance(event, TracedOperation):
            updates = updates or event.phase == "optimizer"
        elif counted[event.storage]:
            live += -event.bytes if isinstance(event, FreeEvent) else event.bytes
        if updates:
            peak = max(peak, live)
    return peak


def _queue_bounds(kernels: Sequence[_Kernel], groups: int, is_repeated: bool) -> tuple[TimeBound, ...]:
    """Paths through host and GPU: the launches up to a kernel, then that kernel and all later ones on the GPU."""
    queue, launched, starts = LaunchQueue(), 0, []
    for one in kernels:
        before = queue.gpu_ps
        idle = queue.launch(one.host_ps, one.gpu_ps) - one.gpu_ps
        launched += one.host_ps
        starts.append((launched, before, idle))
    if not kernels:
        return ()
    waiting = [number for number, start in enumerate(starts) if start[2] > 0]
    picked = {waiting[0]} if is_repeated else {waiting[0], waiting[-1], _last_of(kernels, waiting, "forward")}
    rest, sums = 0, [0] * (len(kernels) + 1)
    for number in range(len(kernels) - 1, -1, -1):
        rest += kernels[number].gpu_ps
        sums[number] = rest
    return tuple(
        TimeBound(starts[number][0] + queue.launch_ps + sums[number], *_order_of_groups(kernels, number, groups))
        for number in sorted(picked)
    )


def _last_of(kernels: Sequence[_Kernel], numbers: Sequence[int], phase: str) -> int:
    return next((one for one in reversed(numbers) if kernels[one].phase == phase), numbers[0])


def _order_of_groups(
    kernels: Sequence[_Kernel], number: int, groups: int
) -> tuple[frozenset[int], frozenset[int], bool]:
    """Groups that a second forward pass of runs behind a kernel, and those of which it runs before."""
    reached = {one.group for one in kernels[: number + 1] if one.phase == "backward"}
    every = frozenset(range(groups))
    before = every if kernels[number].phase == "optimizer" else every & reached
    return every - before, every & before, not number


def _stream_bounds(tape: Tape, link: HostLinkConfig, host: HostRates, forward_ps: int) -> tuple[TimeBound, ...]:
    """Work of the host and of its drives, copies of gradients and of weights: each one after the other.

    Updates and copies of gradients follow the forward pass.
    """
    sums: defaultdict[str, int] = defaultdict(int)
    rates = {"offload": link.offload_bytes_per_s, "prefetch": link.prefetch_bytes_per_s}
    for one in tape.operations:
        if one.task is not None:
            sums[one.stream] += one.times * host.task_ps(one.task)
        elif one.copy is not None and tape.host_buffers[one.copy.buffer].lasts:
            sums[one.copy.direction] += one.times * copy_ps(one.copy.bytes, rates[one.copy.direction], link.latency_ps)
    behind = {"host": forward_ps, "offload": forward_ps}
    return tuple(TimeBound(behind.get(stream, 0) + total) for stream, total in sums.items())
