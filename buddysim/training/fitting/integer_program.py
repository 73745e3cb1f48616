"""The integer program over groups: one choice for each, the least time or the least memory.

Memory is counted at the start of each group's backward pass, before all of these and in the update. Time is a number
above every bound. A solver of `mixed_program` solves it; it stops after a number of nodes, never after a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from buddysim.training.fitting.mixed_program import MixedProgram, Solver
from buddysim.training.fitting.program_inputs import ProgramInputs

_GIB, _MS = float(2**30), 1e9
#: The solver's answers hold to this fraction: a bound is lowered by it.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class ProgramAnswer:
    """What the solver search.

    Attributes
    ----------
    choices : of each group; None where nothing fits
    bound : no choices have less of what is minimised, in picoseconds or bytes; None where nothing fits
    """

    choices: tuple[int, ...] | None
    bound: int | None


@dataclass
class _Rows:
    """Constraints: coefficients and upper limits."""

    columns: int
    coefficients: list[list[float]] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)

    def at_most(self, row: Sequence[float], limit: float) -> None:
        self.coefficients.append(list(row))
        self.limits.append(limit)


def min_time(
    inputs: ProgramInputs, budget: int, solve: Solver, *, expected: bool, host_budget: int | None = None
) -> ProgramAnswer:
    """Minimise the time within a budget.

    Parameters
    ----------
    budget : bytes of GPU memory that tensors may take
    expected : the time that groups are expected to take, not the least that they may
    host_budget : bytes of host memory; None: no limit
    """
    if inputs.update_bytes > budget:
        return ProgramAnswer(None, None)
    rows = _memory_rows(inputs, budget)
    if host_budget is not None:
        rows.at_most([*_scaled(inputs.pinned_bytes, _GIB), 0.0], (host_budget - inputs.host_bytes) / _GIB)
    _time_rows(inputs, rows, expected)
    objective = [0.0] * (inputs.groups * inputs.choices)
    if expected:  # of equally fast plans one that does little
        objective = [
            1e-4 * penalty / _MS + (1e-5 if number % inputs.choices else 0.0)
            for number, penalty in enumerate(chain.from_iterable(inputs.penalty_ps))
        ]
    return _solved(inputs, rows, [*objective, 1.0], _MS, solve)


def min_memory(inputs: ProgramInputs, limit_ps: int | None, solve: Solver) -> ProgramAnswer:
    """Minimise the memory within a time; None: in any."""
    rows = _memory_rows(inputs, None)
    if limit_ps is not None:
        _time_rows(inputs, rows, True, limit_ps)
    objective = [*(1e-6 * penalty / _MS for penalty in chain.from_iterable(inputs.penalty_ps)), 1.0]
    return _solved(inputs, rows, objective, _GIB, solve)


def budgets_of(inputs: ProgramInputs, steps: int) -> list[int]:
    """Return budgets in equal steps, the smallest first: from what the least choices take, to keeping everything."""
    least = [min(range(inputs.choices), key=row.__getitem__) for row in inputs.held_bytes]
    low, high = inputs.memory_bytes(least), inputs.memory_bytes((0,) * inputs.groups)
    return [low + (high - low) * step // steps for step in range(steps + 1)]


def _scaled(table: Sequence[Sequence[int]], unit: float) -> list[float]:
    """A table's values in a unit, group by group."""
    return [value / unit for value in chain.from_iterable(table)]


def _memory_rows(inputs: ProgramInputs, budget: int | None) -> _Rows:
    """What lives at the start of each backward pass is within the budget; None: below the last variable."""
    choices = inputs.choices
    rows = _Rows(inputs.groups * choices + 1)
    row = [0.0] * rows.columns
    held = [_scaled([one], _GIB) for one in inputs.held_bytes]
    if budget is None:
        row[-1] = -1.0
        rows.at_most(row, -inputs.update_bytes / _GIB)
    for group, others in enumerate(inputs.others_bytes):
        row[group * choices : (group + 1) * choices] = held[group]
        rows.at_most(row, ((budget or 0) - others) / _GIB)
    rows.at_most(row, ((budget or 0) - inputs.head_bytes) / _GIB)
    for members in inputs.classes():
        for first, second in pairwise(members):
            order = [0.0] * rows.columns
            order[first * choices : (first + 1) * choices] = held[first]
            order[second * choices : (second + 1) * choices] = [-one for one in held[second]]
            rows.at_most(order, 0.0)
    return rows


def _time_rows(inputs: ProgramInputs, rows: _Rows, expected: bool, limit_ps: int | None = None) -> None:
    """The time, or a limit to it, is above each bound."""

    def below(table: Sequence[Sequence[int]], constant: int) -> None:
        rows.at_most([*_scaled(table, _MS), 0.0 if limit_ps is not None else -1.0], ((limit_ps or 0) - constant) / _MS)

    for bound in inputs.bounds:
        counted = [
            [inputs.counted_ps(bound, group, choice) for choice in range(inputs.choices)]
            for group in range(inputs.groups)
        ]
        below(counted, bound.constant_ps)
    both = [
        [offload + prefetch for offload, prefetch in zip(*rows_of_group, strict=True)]
        for rows_of_group in zip(inputs.offload_ps, inputs.prefetch_ps, strict=True)
    ]
    below(inputs.offload_ps, 0)
    below(both if inputs.serial_copies else inputs.prefetch_ps, inputs.update_ps)
    below(inputs.prefetch_ps, inputs.copies_behind_ps())
    if expected:
        below(inputs.penalty_ps, inputs.simulated_ps)


def _solved(
    inputs: ProgramInputs, rows: _Rows, objective: Sequence[float], unit: float, solve: Solver
) -> ProgramAnswer:
    groups, choices = inputs.groups, inputs.choices
    solution = solve(MixedProgram(groups, choices, objective, rows.coefficients, rows.limits))
    if solution.bound is None:
        return ProgramAnswer(None, None)
    lowered = max(0, int(solution.bound * unit * (1 - _TOLERANCE)))
    if solution.values is None:
        return ProgramAnswer(None, lowered)
    of_group = [solution.values[group * choices : (group + 1) * choices] for group in range(groups)]
    return ProgramAnswer(tuple(max(range(choices), key=values.__getitem__) for values in of_group), lowered)
