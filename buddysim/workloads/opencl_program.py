"""The process that is captured: ``python -m buddysim.workloads.opencl_program NAME SCALE INPUT REPORT [PLUGIN ...]``.

It runs a workload to its end and writes the checks of the verification to the file REPORT, as JSON. The exit code is
0 even if a check fails.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from buddysim.base import plugins
from buddysim.base.boundary import run_program
from buddysim.base.errors import BuddysimError
from buddysim.workloads.device import Device
from buddysim.workloads.solver import SolutionCheck, Solver
from buddysim.workloads.workload_registry import solver_of


def solve(solver: Solver, device: Device) -> list[SolutionCheck]:
    """Run a solver: set up, make every step, close, verify.

    Raises
    ------
    RuntimeError
            a part with other launches than the solver states: snapshots and window would be at wrong launches
    """
    solver.set_up(device)
    _compare(device, solver.setup_launches, "set_up")
    for number in range(solver.steps):
        solver.step(device, number)
        _compare(device, solver.setup_launches + (number + 1) * solver.step_launches, f"step {number}")
    solver.close(device)
    _compare(device, solver.launches, "close")
    device.finish()
    return solver.verify(device)


def _compare(device: Device, stated: int, part: str) -> None:
    if device.launches != stated:
        raise RuntimeError(f"{part} ended after {device.launches} launches, {stated} were stated")


def main(arguments: list[str]) -> int:
    name, scale, which, report, *plugin_files = arguments
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a message; `make` reports the interruption
    try:
        for file in plugin_files:
            plugins.load_plugin(file)
        solver = solver_of(name, scale, which)
        checks = solve(solver, Device(solver))
    except BuddysimError as error:
        Path(report).write_text(json.dumps({"error": str(error)}), encoding="utf-8")
        return 0
    Path(report).write_text(json.dumps({"checks": [asdict(check) for check in checks]}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run_program(lambda: main(sys.argv[1:])))
