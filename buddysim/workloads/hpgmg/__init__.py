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
from buddysim.workloads.solver import SNAPSHOTS, Array, SolutionCheck, Solver

ORDER = 90
SUMMARY = "HPGMG-FV: geometric multigrid of fourth order; a box's vectors in one array, coarsest level on the host"
PAPER = "FF_HPGMG"
WHY = (
    "Fields of full precision once the first solution has begun; the rest are ghost cells and unused bytes behind each "
    "box. The paper's 1.9 is that of HPGMG before its first solution (1.9), or of fields that a port keeps at zero."
)
PART = (
    "two half sweeps of a step's twenty-four on the finest level: a whole step has 74 M at medium, 42 M where it "
    "touches 72 MiB"
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
_COLOURS: Final = 4  # along each direction: cells of one colour share no neighbour of the operator
_GROUP: Final = (32, 4, 1)
_GHOST_GROUP: Final = (128, 1)
_RESIDUAL: Final = 3e-3  # largest residual of an F-cycle over the right-hand side, checked on the grid of:
_RESIDUAL_GRID: Final = 32
_ASYMPTOTIC: Final = 48  # least cells along a box's edge for the check of the order


@dataclass(frozen=True)
class HpgmgProblem:
    """A problem: cells along an edge of each of the eight boxes, number of solutions and levels."""

    dim: int
    steps: int
    levels: int = 4


class Multigrid(Solver):
    """HPGMG: a step is a solution by full multigrid, from the coarsest level up, with a V-cycle on each level.

    The trace has two half sweeps on the finest level, and the exchange of ghost cells between them. After the steps the
    same problem is solved on the two next coarser grids. The three solutions give the order of convergence.
    """

    problem: HpgmgProblem
    sources = (Path(__file__).parent / "hpgmg.cl",)

    def __init__(self, problem: HpgmgProblem) -> None:
        super().__init__(problem)
        self._coarse: dict[int, NDArray[np.float64]] = {}  # solutions on coarser grids, by level

    @cached_property
    def _dims(self) -> list[int]:
        """Number of cells along a box's edge on a level."""
        return [self.problem.dim >> level for level in range(self.problem.levels)]

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        return {
            f"level{level}.box{box}": Array(_VECTORS * _volume(dim) + _PAD)
            for level, dim in enumerate(self._dims)
            for box in range(_BOXES)
        }

    @property
    def _last(self) -> int:
        """The coarsest level."""
        return len(self._dims) - 1

    def _rebuild_levels(self, level: int) -> list[int]:
        """Return the level of each launch of `_rebuild`."""
        return [level] * (2 + 3 * _COLOURS**3 + 1)

    def _cycle_levels(self, level: int) -> list[int]:
        """Return the level of each launch of `_cycle`."""
        if level == self._last:
            return []
        smooth = [level] * (2 * _HALF_SWEEPS)
        down = [level, level, level + 1, level + 1]
        return [*smooth, *down, *self._cycle_levels(level + 1), level + 1, level, *smooth]

    def _solve_levels(self, top: int) -> list[int]:
        """Return the level of each launch of `_solve`."""
        down = [top, top, *range(top + 1, self._last + 1), self._last]
        up = [[level + 1, level, *self._cycle_levels(level)] for level in reversed(range(top, self._last))]
        return [*down, *itertools.chain.from_iterable(up), top, top]

    @cached_property
    def _run_levels(self) -> tuple[list[int], list[int], list[int]]:
        """Level of each launch of the set-up, of a step, and after the steps."""
        levels = range(len(self._dims))
        setup = itertools.chain.from_iterable(self._rebuild_levels(level) for level in levels)
        end = [[level, *self._solve_levels(level)] for level in (1, 2)]
        return list(setup), self._solve_levels(0), [*itertools.chain.from_iterable(end)]

    @property
    def setup_launches(self) -> int:
        return len(self._run_levels[0])

    @property
    def step_launches(self) -> int:
        return len(self._run_levels[1])

    @property
    def closing_launches(self) -> int:
        return len(self._run_levels[2])

    @cached_property
    def _work_done(self) -> NDArray[np.float64]:
        """Work before each launch and at the end, in launches on the finest level."""
        setup, step, end = self._run_levels
        levels = np.array([*setup, *step * self.steps, *end])
        return np.concatenate([[0.0], np.cumsum(0.125**levels)])

    def work(self, launches: int) -> float:
        return float(self._work_done[launches])

    @property
    def snapshot_points(self) -> tuple[int, ...]:
        tenths = np.arange(1, SNAPSHOTS) / SNAPSHOTS * self._work_done[-1]
        return (*(int(point) for point in np.searchsorted(self._work_done, tenths)), self.launches)

    @property
    def window(self) -> tuple[int, int]:
        step = self.setup_launches + self.steps // 2 * self.step_launches
        smoothing = step + self.step_launches - 2 - len(self._cycle_levels(0))
        return smoothing + 1, smoothing + 4

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
        return 2 * 61 * rows + 4 * _BOXES * dim * dim

    @property
    def native_seconds(self) -> float:
        return 4e-8 * (2 * self.problem.dim) ** 3 * self.work(self.launches)

    def set_up(self, device: Device) -> None:
        for level, dim in enumerate(self._dims):
            n = 2 * dim
            beta = host.coefficients(n)
            for box in range(_BOXES):
                data = np.zeros((_VECTORS, dim + 2 * GHOSTS, dim + 2 * GHOSTS, _pitch(dim)))
                interior = _box_slices(box, dim)
                if level == 0:
                    inner = slice(GHOSTS, GHOSTS + dim)
                    data[_F, inner, inner, inner] = host.right_hand_side(n)[interior]
                around = tuple(slice(part.start, part.stop + 2 * GHOSTS) for part in interior)
                for number, name in ((_BETA_I, "beta_i"), (_BETA_J, "beta_j"), (_BETA_K, "beta_k")):
                    data[number, :, :, : dim + 2 * GHOSTS] = beta[name][around]
                device.write(f"level{level}.box{box}", data)
        for level in range(len(self._dims)):
            self._rebuild(device, level)

    def _rebuild(self, device: Device, level: int) -> None:
        """Compute the operator's diagonal and row sums by applying it to one colour of cells after the other.

        As in HPGMG, E has the inverse of the L1 norm of each row; full multigrid doesn't change it.
        """
        dim = self._dims[level]
        self._cells(device, "zero", level, _DINV, dim, ghosts=True)
        self._cells(device, "zero", level, _E, dim, ghosts=True)
        for colour in range(_COLOURS**3):
            self._cells(device, "colour_cells", level, _TEMP, colour, dim)
            self._ghosts(device, level, _TEMP)
            self._cells(device, "add_rows", level, _TEMP, _DINV, _E, dim, self._inverse_h2(level))
        self._cells(device, "invert_rows", level, _DINV, _E, dim)

    def step(self, device: Device, number: int) -> None:
        self._solve(device, 0)

    def close(self, device: Device) -> None:
        for level in (1, 2):
            self._restrict(device, level, _F, _F)
            self._solve(device, level)
            self._coarse[level] = self._read(device, level, _U)

    def _solve(self, device: Device, top: int) -> None:
        """Run full multigrid for U on a level and those below."""
        dim = self._dims[top]
        self._cells(device, "zero", top, _U, dim, ghosts=True)
        self._cells(device, "copy", top, _F, _R, dim)
        for level in range(top + 1, self._last + 1):
            self._restrict(device, level, _R, _R)
        self._cells(device, "zero", self._last, _U, self._dims[-1], ghosts=True)
        self._solve_bottom(device)
        for level in reversed(range(top, self._last)):
            self._interpolate(device, level, "interpolate_quartic")
            self._cycle(device, level)
        self._ghosts(device, top, _U)
        self._cells(device, "residual", top, _U, _TEMP, _F, dim, self._inverse_h2(top))

    def _cycle(self, device: Device, level: int) -> None:
        """Run a V-cycle."""
        if level == self._last:
            self._solve_bottom(device)
            return
        self._smooth(device, level)
        self._ghosts(device, level, _U)
        self._cells(device, "residual", level, _U, _TEMP, _R, self._dims[level], self._inverse_h2(level))
        self._restrict(device, level + 1, _TEMP, _R)
        self._cells(device, "zero", level + 1, _U, self._dims[level + 1], ghosts=True)
        self._cycle(device, level + 1)
        self._interpolate(device, level, "interpolate")
        self._smooth(device, level)

    def _restrict(self, device: Device, level: int, number: int, to: int) -> None:
        """Restrict a vector to a level from the next finer one."""
        dim = self._dims[level]
        both = [*self._boxes(level - 1), *self._boxes(level)]
        device.launch("restrict_cells", (dim, dim, _BOXES * dim), _GROUP, *both, number, to, dim)

    def _interpolate(self, device: Device, level: int, kernel: str) -> None:
        """Interpolate U of a level from the next coarser one."""
        dim = self._dims[level]
        self._ghosts(device, level + 1, _U)
        both = [*self._boxes(level), *self._boxes(level + 1)]
        device.launch(kernel, (dim, dim, _BOXES * dim), _GROUP, *both, _U, self._dims[level + 1])

    def _smooth(self, device: Device, level: int) -> None:
        dim = self._dims[level]
        for half in range(_HALF_SWEEPS):
            source, target = (_U, _TEMP) if half % 2 == 0 else (_TEMP, _U)
            self._ghosts(device, level, source)
            size = (dim // 2, dim, _BOXES * dim)
            numbers = (source, target, _R, half % 2, dim, self._inverse_h2(level))
            device.launch("smooth", size, _GROUP, *self._boxes(level), *numbers)

    def _solve_bottom(self, device: Device) -> None:
        """Solve the coarsest level on the host."""
        right = self._read(device, self._last, _R)
        initial = self._read(device, self._last, _U)
        self._write(device, self._last, _U, host.solve(right, initial, host.coefficients(len(right))))

    def _boxes(self, level: int) -> list[str]:
        return [f"level{level}.box{box}" for box in range(_BOXES)]

    def _inverse_h2(self, level: int) -> float:
        return float(2 * self._dims[level]) ** 2

    def _ghosts(self, device: Device, level: int, number: int) -> None:
        dim = self._dims[level]
        cells = (dim + 2 * GHOSTS) ** 3 - dim**3
        device.launch("fill_ghosts", (cells, _BOXES), _GHOST_GROUP, *self._boxes(level), number, dim)

    def _cells(self, device: Device, kernel: str, level: int, *arguments: float, ghosts: bool = False) -> None:
        """Launch a kernel with a work-item for each cell of a level."""
        side = self._dims[level] + (2 * GHOSTS if ghosts else 0)
        device.launch(kernel, (side, side, _BOXES * side), _GROUP, *self._boxes(level), *arguments)

    def _read(self, device: Device, level: int, number: int) -> NDArray[np.float64]:
        """Return a vector of all boxes, without ghost cells."""
        dim = self._dims[level]
        whole = np.empty((2 * dim, 2 * dim, 2 * dim))
        for box in range(_BOXES):
            whole[_box_slices(box, dim)] = self._box(device, level, box)[number][(slice(GHOSTS, GHOSTS + dim),) * 3]
        return whole

    def _write(self, device: Device, level: int, number: int, whole: NDArray[np.float64]) -> None:
        dim = self._dims[level]
        for box in range(_BOXES):
            data = self._box(device, level, box)
            data[number][(slice(GHOSTS, GHOSTS + dim),) * 3] = whole[_box_slices(box, dim)]
            device.write(f"level{level}.box{box}", data)

    def _box(self, device: Device, level: int, box: int) -> NDArray[np.float64]:
        dim = self._dims[level]
        data = device.read(f"level{level}.box{box}", _VECTORS * _volume(dim))
        return data.reshape(_VECTORS, dim + 2 * GHOSTS, dim + 2 * GHOSTS, _pitch(dim))

    def verify(self, device: Device) -> list[SolutionCheck]:
        n = 2 * self.problem.dim
        solution, right = self._read(device, 0, _U), host.right_hand_side(n)
        rest = right - host.apply_operator(solution, host.coefficients(n))
        residual = float(np.linalg.norm(rest) / np.linalg.norm(right))
        wrong = float(np.abs(rest - self._read(device, 0, _TEMP)).max())
        allowed = _RESIDUAL * (_RESIDUAL_GRID / n) ** 3
        checks = [
            SolutionCheck(
                "residual relative to the right-hand side",
                residual,
                0.0,
                allowed,
                "one F-cycle, the operator with NumPy",
            ),
            SolutionCheck("largest difference of the device's residual", wrong, 0.0, 1e-12, "the operator with NumPy"),
        ]
        if self.problem.dim >= _ASYMPTOTIC:
            solutions = [solution, self._coarse[1], self._coarse[2]]
            pairs = itertools.pairwise(solutions)
            changes = [np.abs(_halved(fine) - coarse).max() for fine, coarse in pairs]
            order = float(np.log2(changes[1] / changes[0]))
            checks.append(SolutionCheck("order, by Richardson's estimate", order, 4.0, 0.2, "the discretisation"))
        return checks


def _pitch(dim: int) -> int:
    return (dim + 2 * GHOSTS + 3) // 4 * 4


def _volume(dim: int) -> int:
    return _pitch(dim) * (dim + 2 * GHOSTS) ** 2


def _box_slices(box: int, dim: int) -> tuple[slice, slice, slice]:
    """Return the position of a box on its level: z, y, x."""
    x, y, z = (slice(bit * dim, (bit + 1) * dim) for bit in (box & 1, box >> 1 & 1, box >> 2))
    return z, y, x


def _halved(fine: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of groups of eight cells."""
    n = len(fine) // 2
    means: NDArray[np.float64] = fine.reshape(n, 2, n, 2, n, 2).mean(axis=(1, 3, 5))
    return means


SOLVER = Multigrid
PROBLEMS = {
    "small": {"profile": HpgmgProblem(16, 10, 3), "replay": HpgmgProblem(12, 10, 3)},
    "medium": {"profile": HpgmgProblem(64, 10), "replay": HpgmgProblem(56, 10)},
    "paper": {"profile": HpgmgProblem(144, 10), "replay": HpgmgProblem(136, 10)},
    "reference": {"profile": HpgmgProblem(64, 20)},
}
