"""Components of workloads without OpenCL: statements of the solvers, checks, random numbers, CG's matrix."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from buddysim.base.errors import BuddysimError
from buddysim.workloads import nas_random
from buddysim.workloads.cg.matrix import make_matrix
from buddysim.workloads.needs import Needs, check_free_resources, needs_of_run
from buddysim.workloads.solver import SNAPSHOTS, SolutionCheck, Solver
from buddysim.workloads.workload_registry import INPUTS, REGISTRY, SCALES, is_network, solver_of

SOLVERS = [name for name, workload in REGISTRY.items() if not is_network(workload)]
ALL = [
    pytest.param(name, scale, which, id=f"{name}-{scale}-{which}")
    for name, workload in REGISTRY.items()
    if name in SOLVERS
    for scale, inputs in workload.PROBLEMS.items()
    for which in inputs
]


@pytest.mark.parametrize(("name", "scale", "which"), ALL)
def test_window_and_snapshots_lie_in_the_run(name: str, scale: str, which: str) -> None:
    solver = solver_of(name, scale, which)
    points = solver.snapshot_points
    assert points == tuple(sorted(set(points)))
    assert len(points) == SNAPSHOTS
    assert points[-1] == solver.launches
    first, end = solver.window
    assert solver.setup_launches <= first < end <= solver.launches
    # Equally spaced: to one step, or to one launch where there are few steps.
    slack = solver.step_launches if solver.steps >= SNAPSHOTS else 1
    gaps = np.diff([solver.work(point) for point in points])
    assert gaps.max() - gaps.min() <= slack


@pytest.mark.parametrize("name", SOLVERS)
def test_inputs_differ_but_their_arrays_have_the_same_names(name: str) -> None:
    problems = REGISTRY.find(name).PROBLEMS
    for scale in ("small", "medium", "paper"):
        assert list(problems[scale]) == list(INPUTS)
        one, other = (solver_of(name, scale, which) for which in INPUTS)
        assert list(one.arrays) == list(other.arrays)
        assert one.problem != other.problem
    assert set(problems) <= set(SCALES)


@pytest.mark.parametrize("name", SOLVERS)
def test_medium_is_beyond_the_cache_and_of_a_bearable_length(name: str) -> None:
    for which in INPUTS:
        solver = solver_of(name, "medium", which)
        assert solver.device_bytes >= 64 << 20
        assert 1e6 <= solver.traced_operations <= 5e6


def test_unknown_names_are_refused_with_the_nearest() -> None:
    for arguments, problem in (
        (("cgg", "small", "profile"), "nearest: cg"),
        (("cg", "smal", "profile"), "nearest: small"),
        (("cg", "small", "profil"), "nearest: profile"),
    ):
        with pytest.raises(BuddysimError, match=problem):
            solver_of(*arguments)


@pytest.mark.parametrize(
    ("value", "expected", "passed"),
    [(1.0, 1.0, True), (1.001, 1.0, True), (1.1, 1.0, False), (0.001, 0.0, True), (0.1, 0.0, False)],
)
def test_checks(value: float, expected: float, passed: bool) -> None:
    assert SolutionCheck("x", value, expected, 0.01, "known").passed is passed


def test_a_check_of_nan_fails() -> None:
    assert not SolutionCheck("x", math.nan, 1.0, 1.0, "known").passed


def test_too_little_memory_is_refused_with_both_figures(tmp_path, monkeypatch) -> None:
    needs = needs_of_run(solver_of("ep", "small", "profile"), 0)
    assert "a few minutes of processor time" in str(Needs(0, 0, 2.0))
    assert "7.5 minutes of processor time" in str(Needs(0, 0, 450.0))
    check_free_resources("ep", needs, tmp_path)
    with pytest.raises(BuddysimError, match=r"needs up to .* of disk, .* free"):
        check_free_resources("ep", Needs(0, 1 << 60, 0), tmp_path)
    with pytest.raises(BuddysimError, match=r"needs about .* of memory, .* available"):
        check_free_resources("ep", Needs(1 << 60, 0, 0), tmp_path)


def test_the_stream_is_the_recurrence() -> None:
    x, expected = 271828183, []
    for _ in range(1000):
        x = x * 5**13 % 2**46
        expected.append(x / 2**46)
    assert nas_random.stream(271828183, 1000).tolist() == expected
    assert len(nas_random.stream(1, 0)) == 0


def test_the_matrix_is_symmetric_and_its_rest_is_what_assembly_left() -> None:
    matrix = make_matrix(200, 5, 10.0)
    dense = np.zeros((200, 200))
    for row in range(200):
        here = slice(matrix.row_starts[row], matrix.row_starts[row + 1])
        assert np.all(np.diff(matrix.columns[here]) > 0)
        dense[row, matrix.columns[here]] = matrix.values[here]
    assert np.allclose(dense, dense.T, rtol=1e-14, atol=0)
    eigenvalues = np.linalg.eigvalsh(dense)
    assert eigenvalues.min() >= 0.1 - 10.0 - 1e-12  # a multiple of the identity, plus what has none below 0
    rest = matrix.columns[matrix.entries :]
    assert set(rest[rest < 0]) == {-1}
    assert np.all(matrix.values[matrix.entries :][rest < 0] == 0)


def test_launches_that_differ_from_those_stated_are_an_error() -> None:
    from buddysim.workloads.opencl_program import solve

    class Wrong(Solver):
        arrays = MappingProxyType({})
        steps, setup_launches, step_launches, traced_operations, native_seconds = 1, 0, 2, 0, 0.0

        def set_up(self, device):
            pass

        def step(self, device, number):
            device.launches += 1

        def verify(self, device):
            return []

    class Counter:
        launches = 0

    with pytest.raises(RuntimeError, match="step 0 ended after 1 launches, 2 were stated"):
        solve(Wrong(None), Counter())  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["sp.cl", "solver.py", "nas_flow.cl"])
def test_a_trace_is_made_again_when_a_solver_that_its_own_extends_changes(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = import_module("buddysim.workloads.make_workload")._digest
    before = digest("csp")
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"//" * (path.name == source))
    assert digest("csp") != before


def test_arrays_that_the_device_cannot_hold_are_said_before_the_work() -> None:
    check = import_module("buddysim.workloads.device")._check_device_memory
    solver = solver_of("ep", "small", "profile")
    check(solver, 1 << 30, 1 << 32)
    with pytest.raises(BuddysimError, match="array x1 needs 2 MiB, the OpenCL device gives at most 1 MiB at once"):
        check(solver, 1 << 20, 1 << 32)
    with pytest.raises(BuddysimError, match=r"the arrays need .*, the OpenCL device has 3 MiB"):
        check(solver, 1 << 30, 3 << 20)
