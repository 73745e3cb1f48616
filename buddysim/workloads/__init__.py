"""The HPC programs of the study: real solvers as OpenCL programs, each verified, each captured at one of its steps.

A workload is a package of this folder (``docs/explanation/workloads.md`` has the table of all, and how to add one).
What they share: `solver` (what a program states and does), `device` (its OpenCL device), `program` (the process that is
captured) and `make` (capture, verification, the file).
"""

from buddysim.workloads.make_workload import MadeWorkload, make_trace_of
from buddysim.workloads.solver import Array, SolutionCheck, Solver
from buddysim.workloads.workload_registry import REGISTRY

__all__ = ["REGISTRY", "Array", "MadeWorkload", "SolutionCheck", "Solver", "make_trace_of"]
