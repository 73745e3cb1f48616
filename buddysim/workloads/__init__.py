"""The workloads of the study: HPC solvers in OpenCL and networks in training, each verified and captured in one step.

A workload is a package of this folder (``docs/explanation/workloads.md`` has the table of all, and how to add one).
Common modules are `solver` (interface of an OpenCL program), `device` (its OpenCL device), `opencl_program` (the
captured process) and `make_workload` (capture, verification, the file).
"""

from buddysim.workloads.make_workload import MadeWorkload, make_trace_of
from buddysim.workloads.solver import Array, SolutionCheck, Solver
from buddysim.workloads.workload_registry import REGISTRY

__all__ = ["REGISTRY", "Array", "MadeWorkload", "SolutionCheck", "Solver", "make_trace_of"]
