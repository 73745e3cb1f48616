"""The workloads by name."""

from __future__ import annotations

from types import ModuleType

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.registry import Registry, modules_with
from buddysim.workloads.solver import Solver

CONTRACT = ("SUMMARY", "PROBLEMS", "SOLVER")

#: The modules of the workloads by name. Each has ``SUMMARY`` (one line: what it computes), ``PROBLEMS`` (by scale and
#: input) and ``SOLVER`` (a `Solver`). Those of the paper have ``PAPER`` (the name there) and ``WHY`` (why the ratio
#: differs from the one there). ``REFERENCE`` has, by input of the scale ``reference``, the key of the program that it
#: is compared with, ``REFERENCE_ARRAYS`` our names of arrays by those of that program. ``PART`` says which part of a
#: step is traced where it isn't a whole one, and what that would take.
REGISTRY: Registry[ModuleType] = Registry("workload", __package__ or "", CONTRACT, modules_with(*CONTRACT))

SCALES = ("small", "medium", "paper", "reference")
INPUTS = ("profile", "replay")


def solver_of(name: str, scale: str, which: str) -> Solver:
    """The solver of a workload's problem, before it touches a device.

    Parameters
    ----------
    name, scale, which : of the workload; one of `SCALES`; one of `INPUTS`

    Raises
    ------
    BuddysimError
        where one of them is unknown; the message has the known ones, and the nearest
    """
    workload = REGISTRY.find(name)
    problems = workload.PROBLEMS
    if scale not in problems:
        known = ", ".join(problems)
        raise BuddysimError(f"{name}: scale {shortened(scale)}: expected one of {known}{hint(scale, problems)}")
    inputs = problems[scale]
    if which not in inputs:
        known = ", ".join(inputs)
        raise BuddysimError(f"{name}: input {shortened(which)}: expected one of {known}{hint(which, inputs)}")
    solver: Solver = workload.SOLVER(inputs[which])
    return solver
