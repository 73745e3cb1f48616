"""354.cg: the NAS Parallel Benchmarks' CG as a GPU program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buddysim.workloads.cg.matrix import Matrix, make_matrix
from buddysim.workloads.device import Device
from buddysim.workloads.nas_random import SEED
from buddysim.workloads.solver import Array, SolutionCheck, Solver

ORDER = 30
SUMMARY = "NAS CG: the smallest eigenvalue of a sparse matrix, by conjugate gradients"
PAPER = "354.cg"
WHY = "Random values of full precision, next to column numbers of a row, which halve: as in the paper."
REFERENCE = {"profile": "npb_cg_a"}

_INNER: Final = 25  # iterations of conjugate gradients for each of the power method
_GROUP: Final = 256
_ROW: Final = 32
_START_LAUNCHES: Final = 2
_INNER_LAUNCHES: Final = 6
_END_LAUNCHES: Final = 4
_TOLERANCE: Final = 1e-10  # EPSILON of cg.f
_BYTES_PER_PRODUCT: Final = 60  # of the host while the matrix is made, for each product of two vector elements
# By order, elements of a vector, iterations and shift: classes S, W, A, B, C (cg.f of NPB 3.4).
_ZETA: Final = {
    (1400, 7, 15, 10): 8.5971775078648,
    (7000, 8, 15, 12): 10.362595087124,
    (14000, 11, 15, 20): 17.130235054029,
    (75000, 13, 75, 60): 22.712745482631,
    (150000, 15, 75, 110): 28.973605592845,
}


@dataclass(frozen=True)
class CgProblem:
    """A problem: order, random elements of each vector, iterations of the power method, shift, seed of the matrix."""

    n: int
    nonzer: int
    iterations: int
    shift: int
    seed: int = SEED


class ConjugateGradient(Solver):
    """NAS CG: a step is an iteration of the power method; the trace has its middle iteration of conjugate gradients.

    One untimed iteration comes first, as in cg.f.
    """

    problem: CgProblem
    sources = (Path(__file__).parent / "cg.cl",)
    setup_launches = 0
    step_launches = _START_LAUNCHES + _INNER * _INNER_LAUNCHES + _END_LAUNCHES

    def __init__(self, problem: CgProblem) -> None:
        super().__init__(problem)
        self._zeta = 0.0
        self._residual = 0.0
        self._matrix: Matrix | None = None

    @property
    def _partials(self) -> int:
        return -(-self.problem.n // _GROUP)

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        n, capacity = self.problem.n, self.problem.n * (self.problem.nonzer + 1) ** 2
        vectors = {name: Array(n + 2) for name in ("x", "z", "p", "q", "r")}
        matrix = {"colidx": Array(capacity, np.int32), "rowstr": Array(n + 1, np.int32), "a": Array(capacity)}
        return matrix | vectors | {"partial": Array(3 * self._partials), "scalars": Array(6)}

    @property
    def constants(self) -> Mapping[str, int | float]:
        return {"N": self.problem.n, "PARTIALS": self._partials}

    @property
    def steps(self) -> int:
        return self.problem.iterations + 1

    @property
    def window(self) -> tuple[int, int]:
        step = self.steps // 2 * self.step_launches + _START_LAUNCHES
        first = step + _INNER // 2 * _INNER_LAUNCHES
        return first, first + _INNER_LAUNCHES

    @property
    def host_bytes(self) -> int:
        return self.problem.n * (self.problem.nonzer + 1) ** 2 * _BYTES_PER_PRODUCT

    @property
    def traced_operations(self) -> int:
        # Three loads for every 32 entries of a row, begun and barely filled ones too; two bounds, five barriers and
        # a result for each row. Vectors: some twenty accesses and barriers.
        row = 0.93 * (self.problem.nonzer + 1) ** 2
        return int(self.problem.n * (3 * (row / _ROW + 0.5) + 8) + self.problem.n / 32 * 35)

    @property
    def native_seconds(self) -> float:
        products = self.problem.n * (self.problem.nonzer + 1) ** 2
        return products * (self.steps * (_INNER + 1) * 2.5e-9 + 1e-6)

    def set_up(self, device: Device) -> None:
        problem = self.problem
        self._matrix = matrix = make_matrix(problem.n, problem.nonzer, problem.shift, problem.seed)
        device.write("a", matrix.values)
        device.write("colidx", matrix.columns)
        device.write("rowstr", matrix.row_starts)
        self._start_vector(device)

    def step(self, device: Device, number: int) -> None:
        if number == 1:
            self._start_vector(device)
        n = self.problem.n
        device.launch("start", n, _GROUP, "x", "z", "p", "q", "r", "partial")
        device.launch("first_rho", _GROUP, _GROUP, "partial", "scalars")
        for _ in range(_INNER):
            device.launch("multiply", n * _ROW, _ROW, "a", "colidx", "rowstr", "p", "q")
            device.launch("dot_pq", n, _GROUP, "p", "q", "partial")
            device.launch("set_alpha", _GROUP, _GROUP, "partial", "scalars")
            device.launch("advance", n, _GROUP, "z", "p", "q", "r", "scalars", "partial")
            device.launch("set_beta", _GROUP, _GROUP, "partial", "scalars")
            device.launch("update_direction", n, _GROUP, "p", "r", "scalars")
        device.launch("multiply", n * _ROW, _ROW, "a", "colidx", "rowstr", "z", "r")
        device.launch("norms", n, _GROUP, "x", "z", "r", "partial")
        device.launch("set_norms", _GROUP, _GROUP, "partial", "scalars")
        device.launch("normalise", n, _GROUP, "x", "z", "scalars")
        scalars = device.read("scalars")
        self._residual = float(np.sqrt(scalars[3]))
        self._zeta = self.problem.shift + 1.0 / float(scalars[4])

    def verify(self, device: Device) -> list[SolutionCheck]:
        problem = self.problem
        key = (problem.n, problem.nonzer, problem.iterations, problem.shift)
        if key in _ZETA and problem.seed == SEED:
            zeta, source = _ZETA[key], "NAS, cg.f"
        else:
            assert self._matrix is not None
            zeta, source = host_zeta(self._matrix, problem), "the same method with SciPy"
        return [
            SolutionCheck("zeta", self._zeta, zeta, _TOLERANCE, source),
            SolutionCheck("|x - A z|", self._residual, 0.0, 1e-9, "exact"),
        ]

    def _start_vector(self, device: Device) -> None:
        device.write("x", np.ones(self.problem.n + 1))


def host_zeta(matrix: Matrix, problem: CgProblem) -> float:
    """Return the estimate of the eigenvalue that the power method computes on the host."""
    from scipy.sparse import csr_array

    entries, n = matrix.entries, problem.n
    a = csr_array((matrix.values[:entries], matrix.columns[:entries], matrix.row_starts), shape=(n, n))
    x: NDArray[np.float64] = np.ones(n)
    zeta = 0.0
    for _ in range(problem.iterations):
        z, r, p = np.zeros(n), x.copy(), x.copy()
        rho = r @ r
        for _ in range(_INNER):
            q = a @ p
            alpha = rho / (p @ q)
            z += alpha * p
            r -= alpha * q
            rho, before = r @ r, rho
            p = r + rho / before * p
        zeta = problem.shift + 1.0 / float(x @ z)
        x = z / np.sqrt(z @ z)
    return zeta


SOLVER = ConjugateGradient
PROBLEMS = {
    "small": {"profile": CgProblem(1400, 7, 15, 10), "replay": CgProblem(1200, 7, 10, 10, SEED + 2)},
    "medium": {"profile": CgProblem(75000, 13, 75, 60), "replay": CgProblem(66000, 13, 20, 50, SEED + 2)},
    "paper": {"profile": CgProblem(300000, 17, 75, 150), "replay": CgProblem(270000, 17, 75, 140, SEED + 2)},
    "reference": {"profile": CgProblem(14000, 11, 15, 20)},
}
