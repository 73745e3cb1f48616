"""Coefficients of the integer program, and of the bounds: figures of groups, by placement and choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from buddysim.training.fitting.assignment import Assignment
from buddysim.training.fitting.choices import GroupChoice
from buddysim.training.fitting.facts import GroupFacts, TimeBound

Table = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ProgramInputs:
    """Of one placement. Tables have a row for each group and a column for each choice.

    Attributes
    ----------
    held_bytes : that live from the group's forward to its backward pass
    others_bytes : by group, next to all held at the start of its backward pass
    head_bytes : next to all held, between forward and backward pass
    update_bytes : while weights are updated
    bounds : with which the time begins
    kernels_ps, launches_ps : additional work of the compute stream and of the host that launches it
    certain : choices whose additional kernels all belong to a second forward pass
    offload_ps, prefetch_ps : on the link
    pinned_bytes : of host memory
    host_bytes : of host memory, next to all pinned
    forward_ps, update_ps : before and behind all copies back, but for those of `early` groups
    early : groups whose copies back may start sooner
    serial_copies : copies out and back follow each other
    simulated_ps : of the plan that keeps everything
    penalty_ps : by which the plan with this choice for all groups takes longer, divided among the groups
    """

    held_bytes: Table
    others_bytes: tuple[int, ...]
    head_bytes: int
    update_bytes: int
    bounds: tuple[TimeBound, ...]
    kernels_ps: Table
    launches_ps: Table
    certain: tuple[bool, ...]
    offload_ps: Table
    prefetch_ps: Table
    pinned_bytes: Table
    host_bytes: int
    forward_ps: int
    update_ps: int
    early: int
    serial_copies: bool
    simulated_ps: int
    penalty_ps: Table

    @property
    def groups(self) -> int:
        """How many."""
        return len(self.held_bytes)

    @property
    def choices(self) -> int:
        """How many."""
        return len(self.certain)

    def classes(self) -> list[list[int]]:
        """Groups with equal figures, each in order."""
        alike: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        for group in range(self.groups):
            key = tuple(
                table[group]
                for table in (self.held_bytes, self.kernels_ps, self.launches_ps, self.offload_ps, self.prefetch_ps)
            )
            alike.setdefault(key, []).append(group)
        return list(alike.values())

    def ordered(self, assignment: Assignment) -> Assignment:
        """Return it with the choices that hold least first among equal groups.

        What the first groups hold lives next to more gradients and runs of others.
        """
        choices = list(assignment.choices)
        for members in self.classes():
            picked = sorted((choices[one] for one in members), key=lambda one: (self.held_bytes[members[0]][one], one))
            for group, choice in zip(members, picked, strict=True):
                choices[group] = choice
        return assignment._replace(choices=tuple(choices))

    def memory_bytes(self, choices: Sequence[int]) -> int:
        """What lives at least, at the start of some group's backward pass, before all of them or in the update."""
        live, most = 0, self.update_bytes
        for group, choice in enumerate(choices):
            live += self.held_bytes[group][choice]
            most = max(most, live + self.others_bytes[group])
        return max(most, live + self.head_bytes)

    def bound_ps(self, choices: Sequence[int]) -> int:
        """What a plan takes at least."""
        return max(self.link_ps(choices), *(self._sum(one, choices) for one in self.bounds))

    def link_ps(self, choices: Sequence[int]) -> int:
        """What copies of saved tensors take at least, with the work before and behind them."""
        out = sum(self.offload_ps[group][choice] for group, choice in enumerate(choices))
        back = sum(self.prefetch_ps[group][choice] for group, choice in enumerate(choices))
        return max(self.update_ps + back + (out if self.serial_copies else 0), out, self.copies_behind_ps() + back)

    def copies_behind_ps(self) -> int:
        """The constant next to all copies back that follow the forward pass."""
        largest = max((max(row) for row in self.prefetch_ps), default=0)
        return self.forward_ps + self.update_ps - self.early * largest

    def expected_ps(self, choices: Sequence[int]) -> int:
        """What a plan takes if groups add up."""
        added = sum(self.penalty_ps[group][choice] for group, choice in enumerate(choices))
        return max(self.simulated_ps + added, self.bound_ps(choices))

    def counted_ps(self, bound: TimeBound, group: int, choice: int) -> int:
        """What a choice adds to a bound."""
        if group in bound.kernels and (bound.is_whole or self.certain[choice]):
            return self.kernels_ps[group][choice]
        if group in bound.launches and self.certain[choice]:
            return self.launches_ps[group][choice]
        return 0

    def _sum(self, bound: TimeBound, choices: Sequence[int]) -> int:
        return bound.constant_ps + sum(self.counted_ps(bound, group, choice) for group, choice in enumerate(choices))


def program_inputs(
    retained: GroupFacts,
    uniform: Mapping[int, tuple[GroupFacts, int]],
    choices: Sequence[GroupChoice],
    simulated_ps: tuple[int, int],
    *,
    early: int,
    serial_copies: bool,
) -> ProgramInputs:
    """Return the coefficients of a placement.

    Parameters
    ----------
    retained : figures of the placement's plan that keeps everything
    uniform : by choice, figures and time of the plan with this choice for all groups, weights on the GPU
    simulated_ps : time of the plan that keeps everything, in this placement and on the GPU
    early, serial_copies : as `ProgramInputs` has them
    """
    on_gpu, own = uniform[0][0], range(len(retained.held_bytes))
    every = [uniform[number][0] if number in uniform else None for number in range(len(choices))]

    def table(name: str, sign: int = 0) -> Table:
        first: tuple[int, ...] = getattr(on_gpu, name)
        rows = []
        for group in own:
            values = [0 if one is None else getattr(one, name)[group] for one in every]
            rows.append(tuple(max(0, value - sign * first[group]) for value in values))
        return tuple(rows)

    weights = [max(1, one) for one in retained.kernels_ps]
    penalties = [max(0, uniform[number][1] - simulated_ps[1]) if number in uniform else 0
                 for number in range(len(choices))]  # fmt: skip
    total = max(1, sum(weights))
    return ProgramInputs(
        table("held_bytes"), retained.others_bytes, retained.head_bytes, retained.update_bytes, retained.bounds,
        table("kernels_ps", 1), table("launches_ps", 1),
        tuple(one.recomputes or one.bits is None for one in choices),
        table("offload_ps"), table("prefetch_ps"), table("pinned_bytes"),
        retained.host_bytes, retained.forward_ps, retained.update_ps,
        early, serial_copies, simulated_ps[0],
        tuple(tuple(one * weights[group] // total for one in penalties) for group in own),
    )  # fmt: skip
