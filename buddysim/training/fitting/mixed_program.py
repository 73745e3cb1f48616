"""Mixed-integer programs of `fit`, and a solver: HiGHS, by SciPy. A browser has HiGHS itself (`browser/highs.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from buddysim.base.parsers.integer_program import solve

#: Nodes of the branch-and-bound tree, at most; the answer's distance from the optimum, as a part of it.
NODES, GAP = 2000, 1e-4


@dataclass(frozen=True)
class MixedProgram:
    """One variable for each group and choice, 0 or 1; of a group's one is 1. The last variable is any number from 0.

    Attributes
    ----------
    objective : coefficients of what is minimised
    rows : coefficients of each constraint
    limits : upper limits of the constraints
    """

    groups: int
    choices: int
    objective: Sequence[float]
    rows: Sequence[Sequence[float]]
    limits: Sequence[float]


@dataclass(frozen=True)
class MixedSolution:
    """What the solver says.

    Attributes
    ----------
    values : of the variables; None where it has no solution
    bound : no solution has less; None where nothing satisfies the constraints
    """

    values: Sequence[float] | None
    bound: float | None


Solver = Callable[[MixedProgram], MixedSolution]


def solve_with_scipy(program: MixedProgram) -> MixedSolution:
    """Solve a program by `scipy.optimize.milp`."""
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint

    size = program.groups * program.choices
    one_each = np.zeros((program.groups, size + 1))
    for group in range(program.groups):
        one_each[group, group * program.choices : (group + 1) * program.choices] = 1.0
    upper, integrality = np.ones(size + 1), np.ones(size + 1)
    upper[size], integrality[size] = np.inf, 0
    constraints = [LinearConstraint(np.array(program.rows), -np.inf, np.array(program.limits))]
    if program.groups:
        constraints.append(LinearConstraint(one_each, 1.0, 1.0))
    options = {"node_limit": NODES, "mip_rel_gap": GAP}
    bounds = Bounds(np.zeros(size + 1), upper)
    solution = solve(np.array(program.objective), constraints, integrality, bounds, options)
    bound = getattr(solution, "mip_dual_bound", None)
    if bound is None or not np.isfinite(bound) or (solution.x is None and solution.status == 2):
        return MixedSolution(None, None)
    return MixedSolution(None if solution.x is None else [float(one) for one in solution.x], float(bound))
