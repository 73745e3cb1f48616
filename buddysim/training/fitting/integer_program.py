"""The integer program over groups: one choice for each, the least time or the least memory.

Memory is counted at the start of each group's backward pass, before all of these, and in the update. Time is a number
above every bound.
`scipy.optimize.milp` (HiGHS) solves it; it stops after a number of nodes, never after a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from buddysim.training.fitting.program_inputs import ProgramInputs

if TYPE_CHECKING:
    import numpy.typing as npt

#: Nodes of the branch-and-bound tree, at most.
NODES = 2000
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
    coefficients: list[npt.NDArray[np.float64]] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)

    def at_most(self, row: npt.NDArray[np.float64], limit: float) -> None:
        self.coefficients.append(row)
        self.limits.append(limit)


def min_time(inputs: ProgramInputs, budget: int, *, expected: bool, host_budget: int | None = None) -> ProgramAnswer:
    """Minimise the time within a budget.

    Parameters
    ----------
    budget : bytes of GPU memory that tensors may take
    expected : the time that groups are expected to take, not the least that they may
    host_budget : bytes of host memory; None: no limit
    """
    if inputs.update_bytes > budget:
        return ProgramAnswer(None, None)
    rows, size = _memory_rows(inputs, budget), inputs.groups * inputs.choices
    if host_budget is not None:
        pinned = np.array(inputs.pinned_bytes, dtype=np.float64).ravel() / _GIB
        rows.at_most(np.append(pinned, 0.0), (host_budget - inputs.host_bytes) / _GIB)
    _time_rows(inputs, rows, expected)
    objective = np.zeros(size + 1)
    objective[size] = 1.0
    if expected:  # of equally fast plans one that does little
        objective[:size] = 1e-4 * np.array(inputs.penalty_ps, dtype=np.float64).ravel() / _MS
        objective[:size] += 1e-5 * (np.arange(size) % inputs.choices > 0)
    return _solved(inputs, rows, objective, _MS)


def min_memory(inputs: ProgramInputs, limit_ps: int | None) -> ProgramAnswer:
    """Minimise the memory within a time; None: in any."""
    size = inputs.groups * inputs.choices
    rows = _memory_rows(inputs, None)
    if limit_ps is not None:
        _time_rows(inputs, rows, True, limit_ps)
    objective = np.zeros(size + 1)
    objective[size] = 1.0
    objective[:size] = 1e-6 * np.array(inputs.penalty_ps, dtype=np.float64).ravel() / _MS
    return _solved(inputs, rows, objective, _GIB)


def budgets_of(inputs: ProgramInputs, steps: int) -> list[int]:
    """Return budgets in equal steps, the smallest first: from what the least choices take, to keeping everything."""
    least = [min(range(inputs.choices), key=row.__getitem__) for row in inputs.held_bytes]
    low, high = inputs.memory_bytes(least), inputs.memory_bytes((0,) * inputs.groups)
    return [low + (high - low) * step // steps for step in range(steps + 1)]


def _memory_rows(inputs: ProgramInputs, budget: int | None) -> _Rows:
    """What lives at the start of each backward pass is within the budget; None: below the last variable."""
    groups, choices = inputs.groups, inputs.choices
    rows = _Rows(groups * choices + 1)
    row = np.zeros(rows.columns)
    held = np.array(inputs.held_bytes, dtype=np.float64) / _GIB
    if budget is None:
        row[-1] = -1.0
        rows.at_most(row.copy(), -inputs.update_bytes / _GIB)
    for group, others in enumerate(inputs.others_bytes):
        row[group * choices : (group + 1) * choices] = held[group]
        rows.at_most(row.copy(), ((budget or 0) - others) / _GIB)
    rows.at_most(row.copy(), ((budget or 0) - inputs.head_bytes) / _GIB)
    for members in inputs.classes():
        for first, second in pairwise(members):
            order = np.zeros(rows.columns)
            order[first * choices : (first + 1) * choices] = held[first]
            order[second * choices : (second + 1) * choices] = -held[second]
            rows.at_most(order, 0.0)
    return rows


def _time_rows(inputs: ProgramInputs, rows: _Rows, expected: bool, limit_ps: int | None = None) -> None:
    """The time, or a limit to it, is above each bound."""

    def below(coefficients: npt.NDArray[np.float64], constant: int) -> None:
        row = np.zeros(rows.columns)
        row[:-1] = coefficients.ravel() / _MS
        if limit_ps is None:
            row[-1] = -1.0
        rows.at_most(row, ((limit_ps or 0) - constant) / _MS)

    for bound in inputs.bounds:
        counted = [
            [inputs.counted_ps(bound, group, choice) for choice in range(inputs.choices)]
            for group in range(inputs.groups)
        ]
        below(np.array(counted, dtype=np.float64), bound.constant_ps)
    offload = np.array(inputs.offload_ps, dtype=np.float64)
    prefetch = np.array(inputs.prefetch_ps, dtype=np.float64)
    below(offload, 0)
    below(prefetch + offload if inputs.serial_copies else prefetch, inputs.update_ps)
    below(prefetch, inputs.copies_behind_ps())
    if expected:
        below(np.array(inputs.penalty_ps, dtype=np.float64), inputs.simulated_ps)


def _solved(inputs: ProgramInputs, rows: _Rows, objective: npt.NDArray[np.float64], unit: float) -> ProgramAnswer:
    from scipy.optimize import Bounds, LinearConstraint, milp

    groups, choices = inputs.groups, inputs.choices
    size = groups * choices
    one_each = np.zeros((groups, size + 1))
    for group in range(groups):
        one_each[group, group * choices : (group + 1) * choices] = 1.0
    upper = np.ones(size + 1)
    upper[size] = np.inf
    constraints: list[Any] = [LinearConstraint(np.array(rows.coefficients), -np.inf, np.array(rows.limits))]
    if groups:
        constraints.append(LinearConstraint(one_each, 1.0, 1.0))
    integrality = np.ones(size + 1)
    integrality[size] = 0
    solution = milp(
        objective, constraints=constraints, integrality=integrality, bounds=Bounds(np.zeros(size + 1), upper),
        options={"node_limit": NODES, "mip_rel_gap": 1e-4},
    )  # fmt: skip
    bound = getattr(solution, "mip_dual_bound", None)
    if bound is None or not np.isfinite(bound) or (solution.x is None and solution.status == 2):
        return ProgramAnswer(None, None)
    lowered = max(0, int(float(bound) * unit * (1 - _TOLERANCE)))
    if solution.x is None:
        return ProgramAnswer(None, lowered)
    picked = solution.x[:size].reshape(groups, choices).argmax(axis=1)
    return ProgramAnswer(tuple(int(one) for one in picked), lowered)
