"""Makes the trace of a workload: captures its run, and writes the file only if the verification passes."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import buddysim
from buddysim.base import plugins
from buddysim.base.counted import counted
from buddysim.base.errors import BuddysimError, TraceFileError
from buddysim.base.output import Output, check_output
from buddysim.base.terminal import say, warn
from buddysim.base.textfile import read_json
from buddysim.capture.launch_window import CapturePlan, LaunchWindow
from buddysim.capture.messages import signal_text
from buddysim.capture.opencl.assumptions import ASSUMED, DEVICES
from buddysim.capture.opencl.session import OpenclCaptureOutcome, run_program
from buddysim.capture.opencl.toolchain import find_toolchain, hooks_object, pass_plugin, runtime_library
from buddysim.capture.opencl.trace_recorder import TraceRecorder
from buddysim.capture.torch import access
from buddysim.trace import Provenance, open_trace
from buddysim.workloads import training
from buddysim.workloads.device import import_pyopencl
from buddysim.workloads.needs import Needs, check_free_resources, needs_of_run
from buddysim.workloads.solver import SolutionCheck, Solver
from buddysim.workloads.training.make_training import assumptions_of, make_training
from buddysim.workloads.training.make_training import needs_of as needs_of_training
from buddysim.workloads.workload_registry import REGISTRY, is_network, problem_of, solver_of

TOOL = "buddysim workloads"
_PROGRAM = "buddysim.workloads.opencl_program"
_INTERRUPTIONS = (-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP)
_LICENCE = "BSD-3-Clause"


@dataclass(frozen=True)
class MadeWorkload:
    """The result of making a trace.

    Attributes
    ----------
    path : of the trace
    kept : whether the file was there, made from the same sources and problem
    verification : a line of each check
    """

    path: Path
    is_present: bool
    verification: tuple[str, ...]


def make_trace_of(
    name: str, scale: str, which: str, path: str | os.PathLike[str], contents_every: int = 0
) -> MadeWorkload:
    """Make the trace of a workload, unless the file already has the same trace.

    Parameters
    ----------
    name, scale, which : of the workload, `registry.SCALES`, `registry.INPUTS`
    path : file to write; it appears when it is complete and verified
    contents_every : keep the bytes of every n-th page of 8 KiB in the snapshots over the run, 0: sizes only

    Raises
    ------
    BuddysimError
            an unknown name, too little memory or disk space, a missing program, or a failed verification
    """
    problem = problem_of(name, scale, which)
    target = Path(path)
    check_output(target)
    workload = REGISTRY.find(name)
    made = _make_training if is_network(workload) else _make_solver
    origin = _provenance(name, scale, which, problem, contents_every)
    if (verification := _made_before(target, origin)) is not None:
        return MadeWorkload(target, True, verification)
    needs = needs_of(name, scale, which, contents_every)
    check_free_resources(f"{name} at {scale}", needs, target.resolve().parent)
    say(f"{name} {scale} {which}: {needs}")
    checks = made(name, scale, which, target, origin, contents_every)
    return MadeWorkload(target, False, tuple(map(str, checks)))


def needs_of(name: str, scale: str, which: str, contents_every: int) -> Needs:
    """Return the memory, disk space and time that the trace of a workload needs."""
    if is_network(REGISTRY.find(name)):
        if contents_every:
            raise BuddysimError(
                f"{name}: --contents-every {contents_every}: a network's trace has sizes only, expected 0"
            )
        return needs_of_training(name, REGISTRY.find(name).NETWORK, problem_of(name, scale, which))
    import_pyopencl()
    return needs_of_run(solver_of(name, scale, which), contents_every)


def _make_training(
    name: str, scale: str, which: str, target: Path, origin: Provenance, contents_every: int
) -> list[SolutionCheck]:
    with Output(target) as output:
        checks = make_training(name, REGISTRY.find(name), problem_of(name, scale, which), output, origin)
        failed = "; ".join(str(check) for check in checks if not check.passed)
        if failed:
            raise BuddysimError(f"{name}: verification failed: {failed}: no trace was written")
    return checks


def _make_solver(
    name: str, scale: str, which: str, target: Path, origin: Provenance, contents_every: int
) -> list[SolutionCheck]:
    solver = solver_of(name, scale, which)
    start = time.perf_counter()
    with Output(target) as output:
        record, outcome, checks = _captured(name, scale, which, solver, output, origin, contents_every)
        _refuse_what_went_wrong(name, solver, record, outcome, checks)
    launches = counted(record.counts.launches, "launch", "launches")
    say(
        f"{target}: {counted(record.counts.kernels, 'kernel')} of {launches}, "
        f"{record.counts.operations} warp operations, {counted(len(checks), 'check')} passed; "
        f"{time.perf_counter() - start:.0f} s"
    )
    return checks


def _captured(
    name: str, scale: str, which: str, solver: Solver, output: Output, origin: Provenance, contents_every: int
) -> tuple[TraceRecorder, OpenclCaptureOutcome, list[SolutionCheck]]:
    """Run and capture the program in a process of its own."""
    toolchain = find_toolchain()
    for build in (runtime_library, pass_plugin, hooks_object):
        build(toolchain)
    points = solver.snapshot_points
    plan = CapturePlan(len(points), LaunchWindow(*solver.window), points)
    record = TraceRecorder(output, origin, len(points), len(points), contents_every, 1, "bpc")
    try:
        with tempfile.TemporaryDirectory(prefix="buddysim-") as folder:
            report = Path(folder) / "report.json"
            command = [sys.executable, "-m", _PROGRAM, name, scale, which, str(report)]
            command += map(str, plugins.loaded_files())
            outcome = run_program(command, sys.executable, record.receive, toolchain, plan)
            if outcome.broken is not None:
                raise outcome.broken  # an interrupted trace is made again from the beginning
            checks = _checks(name, report, outcome)
        record.name_buffers(list(solver.arrays))
        text = "; ".join(map(str, checks))
        record.finish({"verification": f"none: {text}", "end": "none: the program ended with exit code 0"})
    except BaseException:
        record.abort()
        raise
    return record, outcome, checks


def _checks(name: str, report: Path, outcome: OpenclCaptureOutcome) -> list[SolutionCheck]:
    """Return the checks of the program's report; a BuddysimError if the program failed."""
    if outcome.returncode in _INTERRUPTIONS:
        raise KeyboardInterrupt
    if outcome.returncode < 0:
        raise BuddysimError(
            f"{name}: the program was killed by {signal_text(outcome.returncode)}: no trace was written"
        )
    if outcome.returncode or not report.exists():
        raise BuddysimError(f"{name}: the program ended with exit code {outcome.returncode}: no trace was written")
    result = read_json(report, "report of a workload", 1 << 24)
    if "error" in result:
        raise BuddysimError(f"{name}: {result['error']}")
    return [SolutionCheck(**check) for check in result["checks"]]


def _refuse_what_went_wrong(
    name: str,
    solver: Solver,
    record: TraceRecorder,
    outcome: OpenclCaptureOutcome,
    checks: list[SolutionCheck],
) -> None:
    failed = [str(check) for check in checks if not check.passed]
    problems = []
    if failed or not checks:
        problems.append(f"verification failed: {'; '.join(failed) or 'nothing was checked'}")
    if record.counts.launches != solver.launches:
        problems.append(f"{record.counts.launches} launches, {solver.launches} were stated")
    first, end = solver.window
    if record.counts.kernels != end - first:
        untraced = "; ".join(record.problems.untraced)
        problems.append(f"{record.counts.kernels} of {end - first} launches were traced; {untraced}")
    if record.counts.outside:
        problems.append(f"{record.counts.outside} lane accesses were outside of every array")
    if problems:
        raise BuddysimError(f"{name}: {'; '.join(problems)}: no trace was written")
    if outcome.others:
        warn(f"{outcome.others} further processes used OpenCL")


def _provenance(name: str, scale: str, which: str, problem: Any, contents_every: int) -> Provenance:
    """Return the provenance of the trace; equal for equal traces."""
    contents = f"every {contents_every}-th page of 8 KiB" if contents_every else "none"
    captured = ASSUMED | {
        "device": DEVICES[False],
        "contents": f"sizes of all bytes in each snapshot; bytes: {contents}",
        "launches": "one step is traced; the others ran in PoCL",
    }
    return Provenance(
        tool=TOOL,
        version=buddysim.__version__,
        source=f"{name} {scale} {which} {json.dumps(asdict(problem), sort_keys=True)}",
        licence=_LICENCE,
        command=f"buddysim workloads make {name} --scale {scale} --input {which}",
        assumptions=(assumptions_of(problem) if is_network(REGISTRY.find(name)) else captured)
        | {"sources": f"none: their digest is {_digest(name)}"},
    )


def _digest(name: str) -> str:
    """Return the digest of a workload's sources: its own, those of its base solvers, and those common to its kind."""
    workload = REGISTRY.find(name)
    folders = {Path(__file__).parent, Path(workload.__file__ or "").parent}
    if is_network(workload):
        folders |= {Path(inspect.getfile(part)).parent for part in (training, access)}
    else:
        kinds = workload.SOLVER.__mro__
        folders |= {Path(inspect.getfile(kind)).parent for kind in kinds if issubclass(kind, Solver)}
    files = sorted(file for folder in folders for ending in ("*.py", "*.pyx", "*.cl") for file in folder.glob(ending))
    digest = blake2b(digest_size=16)
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _made_before(target: Path, origin: Provenance) -> tuple[str, ...] | None:
    """Return the lines of the verification of a complete file with the same provenance; None without such a file."""
    if not target.is_file():
        return None
    with contextlib.suppress(TraceFileError), open_trace(target) as trace:
        provenance = trace.provenance
        verification = provenance.assumptions.get("verification", "")
        end = provenance.assumptions.get("end", "")
        expected = replace(origin, assumptions=origin.assumptions | {"verification": verification, "end": end})
        if not trace.interrupted and provenance == expected and verification and end.startswith("none:"):
            return tuple(verification.removeprefix("none: ").split("; "))
    return None
