"""The workloads by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.registry import Registry, name_of
from buddysim.workloads.solver import Solver

CONTRACT = ("SUMMARY", "PROBLEMS", "SOLVER or NETWORK")


def _adopt(module: ModuleType) -> Mapping[str, ModuleType]:
    stated = all(hasattr(module, name) for name in ("SUMMARY", "PROBLEMS"))
    name = getattr(module, "NAME", name_of(module))
    return {name: module} if stated and (hasattr(module, "SOLVER") or is_network(module)) else {}


def is_network(module: ModuleType) -> bool:
    """Whether a workload is a network in training."""
    return hasattr(module, "NETWORK")


#: The modules of the workloads by name. Each has ``SUMMARY`` (one line: what it computes), ``PROBLEMS`` (by scale and
#: input) and ``SOLVER`` (a `Solver`) or ``NETWORK`` (`training.problem.Network`). Those of the paper have ``PAPER``
#: (the name there) and ``WHY`` (why the ratio differs from the one there). ``REFERENCE`` has, by input of the scale
#: ``reference``, the key of the program that it is compared with, ``REFERENCE_ARRAYS`` our names of arrays by those of
#: that program. ``NAME`` is there where it isn't the module's. ``PART`` says which part of a step is traced where it
#: isn't a whole one, and what that would take.
REGISTRY: Registry[ModuleType] = Registry("workload", __package__ or "", CONTRACT, _adopt)

SCALES = ("small", "medium", "paper", "reference")
INPUTS = ("profile", "replay")


def problem_of(name: str, scale: str, which: str) -> Any:
    """Return the problem of a workload.

    Parameters
    ----------
    name, scale, which : of the workload; one of `SCALES`; one of `INPUTS`

    Raises
    ------
    BuddysimError
            an unknown one; the message has the known ones, and the nearest
    """
    problems = REGISTRY.find(name).PROBLEMS
    if scale not in problems:
        known = ", ".join(problems)
        raise BuddysimError(f"{name}: scale {shortened(scale)}: expected one of {known}{hint(scale, problems)}")
    inputs = problems[scale]
    if which not in inputs:
        known = ", ".join(inputs)
        raise BuddysimError(f"{name}: input {shortened(which)}: expected one of {known}{hint(which, inputs)}")
    return inputs[which]


def solver_of(name: str, scale: str, which: str) -> Solver:
    """Return the solver of a problem, without a device yet."""
    solver: Solver = REGISTRY.find(name).SOLVER(problem_of(name, scale, which))
    return solver
