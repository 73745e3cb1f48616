"""Static allocation, as CNTK plans it before the first iteration: tensors with disjoint lifetimes share a region.

Gist, Section IV-C: structures are sorted by size, and groups formed of those that don't overlap; a group costs its
largest member. Where the paper does not say: each goes to the smallest group that takes it, of equal ones the oldest;
lifetimes include their first and last step. `ref_memory_usage.ref_groups` is the reference model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

from buddysim.base.memory_pool import FitPolicy
from buddysim.training.iteration.memory_usage import (
    FailedRequest,
    TensorAddresses,
    TensorFilter,
    WorkspaceRelief,
    is_any_tensor,
)
from buddysim.training.iteration.program import Program, ProgramTensor


@dataclass
class _Group:
    largest: ProgramTensor
    members: list[int]
    busy: int  # a bit for each step at which a member lives


@dataclass(frozen=True)
class StaticGroups:
    """Regions that are reserved for the whole iteration.

    Attributes
    ----------
    stashed_in_groups : False gives each feature map that is kept from forward to backward a region of its own (Gist's
        "investigation baseline", Section V-A)
    """

    stashed_in_groups: bool = field(default=True)

    def allocate(
        self,
        program: Program,
        capacity: int | None,
        pool_policy: FitPolicy = "best-fit",
        relief: WorkspaceRelief | None = None,
    ) -> TensorAddresses:
        """Addresses of the groups, one behind the other; nothing is deferred, and no workspace given up."""
        groups = self._groups(program, range(len(program.tensors)))
        ends = list(accumulate(group.largest.byte_count for group in groups))
        addresses = [-1] * len(program.tensors)
        for group, end in zip(groups, ends, strict=True):
            for number in group.members:
                addresses[number] = end - group.largest.byte_count
        regions = tuple(group.largest for group in groups)
        total = ends[-1] if ends else 0
        failure = None
        if capacity is not None and total > capacity:
            kind = "static allocation"
            failure = FailedRequest("gpu", None, "resident", kind, total, capacity, capacity, total - capacity)
        return TensorAddresses(program, tuple(addresses), total, failure, {}, regions)

    def min_bytes(self, program: Program, counted: TensorFilter = is_any_tensor) -> int:
        """The bytes of all groups."""
        tensors = [tensor.number for tensor in program.tensors if counted(tensor)]
        return sum(group.largest.byte_count for group in self._groups(program, tensors))

    def _groups(self, program: Program, tensors: range | list[int]) -> list[_Group]:
        alone = set(program.resident)
        if not self.stashed_in_groups:
            alone |= {number for number in tensors if program.stashed(number)}
        groups: list[_Group] = []
        shared: list[_Group] = []  # by size, the largest first; equal sizes in order
        for number in sorted(tensors, key=lambda number: (-program.tensors[number].byte_count, number)):
            first, last = program.lives[number]
            busy = (1 << (last + 1)) - (1 << first)
            if number not in alone:
                free_group = _smallest_free(shared, busy)
                if free_group is not None:
                    free_group.members.append(number)
                    free_group.busy |= busy
                    continue
            groups.append(_Group(program.tensors[number], [number], busy))
            if number not in alone:
                shared.append(groups[-1])
        return groups


def _smallest_free(groups: list[_Group], busy: int) -> _Group | None:
    """Return the smallest group without a live member at the steps of `busy`; of equal ones the oldest."""
    smallest: _Group | None = None
    for group in reversed(groups):
        if smallest is not None and group.largest.byte_count > smallest.largest.byte_count:
            break
        if not group.busy & busy:
            smallest = group
    return smallest
