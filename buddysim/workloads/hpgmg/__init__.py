"""FF_HPGMG-FV: geometric multigrid on finite volumes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buddysim.workloads.device import Device
from buddysim.workloads.hpgmg import host
from buddysim.workloads.hpgmg.host import GHOSTS
from buddysim.workloads.solver import Array, Check, Solver

ORDER = 90
SUMMARY = "HPGMG-FV: geometric multigrid of fourth order; a box's vectors in one array, coarsest level on the host"
PAPER = "FF_HPGMG"
WHY = (
    "Fields of full precision; what is left are ghost cells and the room behind each box. The paper's 1.9 must be "
    "that of fields that are still zero, as those of HPGMG before its first solution are (1.9)."
)
REFERENCE = {"profile": "hpgmg_fv4"}
#: The boxes of the two finest levels, by the bytes of one.
REFERENCE_ARRAYS = {
    "vectors of one box 23687712": tuple(f"level0.box{box}" for box in range(8)),
    "vectors of one box 4407840": tuple(f"level1.box{box}" for box in range(8)),
}

_TEMP, _U, _F, _E, _R, _DINV, _BETA_I, _BETA_J, _BETA_K = range(9)
_VECTORS: Final = 9
_PAD: Final = (1 << 20) // 8 + 4  # elements behind a box's vectors: level.c allocates a MiB of them
_BOXES: Final = 8
_HALF_SWEEPS: Final = 6  # before and after a coarser level's correction
_GROUP: Final = (32, 4, 1)
_LEVEL_LAUNCHES: Final = 2 * 2 * _HALF_SWEEPS + 2 + 1 + 1 + 2
_CORRECTION_LAUNCHES: Final = 2 + 1 + 1
_BEFORE_SMOOTHING: Final = 4  # launches of a step: ghosts, residual, zero, ghosts
_CYCLES_OF_SMALLER: Final = 8
_ASYMPTOTIC: Final = 48  # cells along a box's edge from which on the order shows


@dataclass(frozen=True)
class Problem:
    """Cells along an edge of each of the eight boxes, V-cycles, levels."""

    dim: int
    steps: int
    levels: int = 4


class Multigrid(Solver):
    """A step is a V-cycle for the error, which is then added.

    Two half sweeps on the finest level are traced, with the ghost cells between them.

    The same problem is solved on the two next coarser grids before: the three solutions show the order.
    """

    problem: Problem
    sources = (Path(__file__).parent / "hpgmg.cl",)

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._coarse: dict[int, NDArray[np.float64]] = {}  # solutions on coarser grids, by level

    @cached_property
    def _dims(self) -> list[int]:
        """Cells along a box's edge, by level."""
        return [self.problem.dim >> level for level in range(self.problem.levels)]

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        return {
            f"level{level}.box{box}": Array(_VECTORS * _volume(dim) + _PAD)
            for level, dim in enumerate(self._dims)
            for box in range(_BOXES)
        }

    def _cycle_launches(self, level: int) -> int:
        return (len(self._dims) - 1 - level) * _LEVEL_LAUNCHES + _CORRECTION_LAUNCHES

    @property
    def setup_launches(self) -> int:
        return sum(_CYCLES_OF_SMALLER * self._cycle_launches(level) + 1 for level in (1, 2))

    @property
    def step_launches(self) -> int:
        return self._cycle_launches(0)

    @property
    def window(self) -> tuple[int, int]:
        step = self.setup_launches + self.steps // 2 * self.step_launches
        return step + _BEFORE_SMOOTHING, step + _BEFORE_SMOOTHING + 3

    @property
    def steps(self) -> int:
        return self.problem.steps

    @property
    def host_bytes(self) -> int:
        return 12 * 8 * (2 * self.problem.dim) ** 3

    @property
    def traced_operations(self) -> int:
        dim = self.problem.dim
        rows = _BOXES * dim * dim * -(-dim // 64)
        return 2 * 61 * rows + 20 * _BOXES * dim * dim

    @property
    def native_seconds(self) -> float:
        return 1.5e-6 * (2 * self.problem.dim) ** 3 * (self.steps + 2)

    def set_up(self, device: Device) -> None:
        for level, dim in enumerate(self._dims):
            n = 2 * dim
            beta = host.coefficients(n)
            fields = {_F: host.right_hand_side(n), _DINV: host.inverse_diagonal(n, beta)}
            for box in range(_BOXES):
                data = np.zeros((_VECTORS, dim + 2 * GHOSTS, dim + 2 * GHOSTS, _pitch(dim)))
                place = _place(box, dim)
                for number, field in fields.items():
                    inner = slice(GHOSTS, GHOSTS + dim)
                    data[number, inner, inner, inner] = field[place]
                around = tuple(slice(part.start, part.stop + 2 * GHOSTS) for part in place)
                for number, name in ((_BETA_I, "beta_i"), (_BETA_J, "beta_j"), (_BETA_K, "beta_k")):
                    data[number, :, :, : dim + 2 * GHOSTS] = beta[name][around]
                device.write(f"level{level}.box{box}", data)
        for level in (2, 1):
            for _ in range(_CYCLES_OF_SMALLER):
                self._correct(device, level)
            self._coarse[level] = self._read(device, level, _U)
            self._cells(device, "zero", level, _U, self._dims[level], ghosts=True)

    def step(self, device: Device, number: int) -> None:
        self._correct(device, 0)

    def _correct(self, device: Device, level: int) -> None:
        """A V-cycle for the error of U on a level."""
        dim = self._dims[level]
        self._ghosts(device, level, _U)
        self._cells(device, "residual", level, _U, _R, _F, dim, self._inverse_h2(level))
        self._cells(device, "zero", level, _E, dim, ghosts=True)
        self._cycle(device, level)
        self._cells(device, "add", level, _U, _E, dim)

    def _cycle(self, device: Device, level: int) -> None:
        if level == len(self._dims) - 1:
            self._solve_bottom(device)
            return
        dim = self._dims[level]
        self._smooth(device, level)
        self._ghosts(device, level, _E)
        self._cells(device, "residual", level, _E, _TEMP, _R, dim, self._inverse_h2(level))
        coarse = self._dims[level + 1]
        both = [*self._boxes(level), *self._boxes(level + 1)]
        device.launch("restrict_cells", (coarse, coarse, _BOXES * coarse), _GROUP, *both, _TEMP, _R, coarse)
        self._cells(device, "zero", level + 1, _E, coarse, ghosts=True)
        self._cycle(device, level + 1)
        self._ghosts(device, level + 1, _E)
        device.launch("interpolate", (dim, dim, _BOXES * dim), _GROUP, *both, _E, coarse)
        self._smooth(device, level)

    def _smooth(self, device: Device, level: int) -> None:
        dim = self._dims[level]
        for half in range(_HALF_SWEEPS):
            source, target = (_E, _TEMP) if half % 2 == 0 else (_TEMP, _E)
            self._ghosts(device, level, source)
            size = (dim // 2, dim, _BOXES * dim)
            numbers = (source, target, _R, half % 2, dim, self._inverse_h2(level))
            device.launch("smooth", size, _GROUP, *self._boxes(level), *numbers)

    def _solve_bottom(self, device: Device) -> None:
        """On the host, which reads and writes the coarsest boxes."""
        level, n = len(self._dims) - 1, 2 * self._dims[-1]
        right = self._read(device, level, _R)
        self._write(device, level, _E, host.solve(right, host.coefficients(n)))

    def _boxes(self, level: int) -> list[str]:
        return [f"level{level}.box{box}" for box in range(_BOXES)]

    def _inverse_h2(self, level: int) -> float:
        return float(2 * self._dims[level]) ** 2

    def _ghosts(self, device: Device, level: int, number: int) -> None:
        self._cells(device, "fill_ghosts", level, number, self._dims[level], ghosts=True)

    def _cells(self, device: Device, kernel: str, level: int, *arguments: float, ghosts: bool = False) -> None:
        """Launch a kernel with a work-item for each cell of a level."""
        side = self._dims[level] + (2 * GHOSTS if ghosts else 0)
        device.launch(kernel, (side, side, _BOXES * side), _GROUP, *self._boxes(level), *arguments)

    def _read(self, device: Device, level: int, number: int) -> NDArray[np.float64]:
        """A vector of all boxes, without ghosts."""
        dim = self._dims[level]
        whole = np.empty((2 * dim, 2 * dim, 2 * dim))
        for box in range(_BOXES):
            whole[_place(box, dim)] = self._box(device, level, box)[number][(slice(GHOSTS, GHOSTS + dim),) * 3]
        return whole

    def _write(self, device: Device, level: int, number: int, whole: NDArray[np.float64]) -> None:
        dim = self._dims[level]
        for box in range(_BOXES):
            data = self._box(device, level, box)
            data[number][(slice(GHOSTS, GHOSTS + dim),) * 3] = whole[_place(box, dim)]
            device.write(f"level{level}.box{box}", data)

    def _box(self, device: Device, level: int, box: int) -> NDArray[np.float64]:
        dim = self._dims[level]
        data = device.read(f"level{level}.box{box}", _VECTORS * _volume(dim))
        return data.reshape(_VECTORS, dim + 2 * GHOSTS, dim + 2 * GHOSTS, _pitch(dim))

    def verify(self, device: Device) -> list[Check]:
        n = 2 * self.problem.dim
        solution, right = self._read(device, 0, _U), host.right_hand_side(n)
        rest = right - host.apply_operator(solution, host.coefficients(n))
        residual = float(np.linalg.norm(rest) / np.linalg.norm(right))
        found = [Check("residual beside the right-hand side", residual, 0.0, 1e-8, "the operator with NumPy")]
        if self.problem.dim >= _ASYMPTOTIC:
            solutions = [solution, self._coarse[1], self._coarse[2]]
            pairs = itertools.pairwise(solutions)
            changes = [np.abs(_halved(fine) - coarse).max() for fine, coarse in pairs]
            order = float(np.log2(changes[1] / changes[0]))
            found.append(Check("order, by Richardson's estimate", order, 4.0, 0.2, "the discretisation"))
        return found


def _pitch(dim: int) -> int:
    return (dim + 2 * GHOSTS + 3) // 4 * 4


def _volume(dim: int) -> int:
    return _pitch(dim) * (dim + 2 * GHOSTS) ** 2


def _place(box: int, dim: int) -> tuple[slice, slice, slice]:
    """Where a box lies on its level: z, y, x."""
    x, y, z = (slice(bit * dim, (bit + 1) * dim) for bit in (box & 1, box >> 1 & 1, box >> 2))
    return z, y, x


def _halved(fine: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of eight cells."""
    n = len(fine) // 2
    means: NDArray[np.float64] = fine.reshape(n, 2, n, 2, n, 2).mean(axis=(1, 3, 5))
    return means


SOLVER = Multigrid
PROBLEMS = {
    "small": {"profile": Problem(16, 10, 3), "replay": Problem(12, 10, 3)},
    "medium": {"profile": Problem(64, 10), "replay": Problem(56, 10)},
    "paper": {"profile": Problem(144, 10), "replay": Problem(136, 10)},
    "reference": {"profile": Problem(64, 10)},
}
