"""The flow problem of NAS BT and SP, its exact solution and its forcing (RNR-94-007, section 3).

Fields on the host are (5, nz, ny, nx): density, momentum along x, y and z, energy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buddysim.workloads.device import Device
from buddysim.workloads.solver import Array, SolutionCheck, Solver

Field = NDArray[np.float64]

#: Source of the right-hand side's kernels, compiled before the program's own source.
SOURCE: Final = Path(__file__).parent / "nas_flow.cl"
#: Names of the scalars on the grid, each an array of its own.
SCALARS: Final = ("us", "vs", "ws", "qs", "rho_i", "square")
RHS_LAUNCHES: Final = 3
GROUP: Final = (32, 4, 1)
LINE_GROUP: Final = (32, 1)
TOLERANCE: Final = 1e-8  # epsilon of verify.f

_C1, _C2, _C5, _C3C4 = 1.4, 0.4, 1.4, 0.1
_C1C5 = _C1 * _C5
_DISSIPATION = 0.25  # of fourth order: a quarter of the largest coefficient of second order
_SECOND_ORDER = (0.75, 0.75, 1.0)  # along x, y, z, of all five components
# Coefficients of the exact solution: a constant, then powers 1 to 4 of x, y and z in turn; a row for each component.
_EXACT = np.array(
    [
        [2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3],
        [1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5],
        [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4],
        [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3],
        [5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2],
    ]
)


@dataclass(frozen=True)
class NasProblem:
    """A problem: grid points along x, y and z, number and length of the time steps.

    Attributes
    ----------
    together : True: the five components of a cell are contiguous; False: one component of all cells is
    expected : norms of residual and error from an independent program, for a problem that is no NAS class
    """

    nx: int
    ny: int
    nz: int
    steps: int
    dt: float
    together: bool = False
    expected: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of arrays on the host."""
        return self.nz, self.ny, self.nx

    @property
    def pitch(self) -> tuple[int, int]:
        """Elements of a row, rows of a plane on the device: the Fortran program makes both odd."""
        return self.nx // 2 * 2 + 1, self.ny // 2 * 2 + 1

    @property
    def cells(self) -> int:
        """Elements of a scalar on the device, with padding."""
        return self.pitch[0] * self.pitch[1] * self.nz


def device_layout(field: Field, problem: NasProblem) -> Field:
    """Return a field in the layout of the device."""
    padded = np.zeros((5, problem.nz, problem.pitch[1], problem.pitch[0]))
    padded[:, :, : problem.ny, : problem.nx] = field
    return np.ascontiguousarray(np.moveaxis(padded, 0, -1)) if problem.together else padded


def host_layout(data: Field, problem: NasProblem) -> Field:
    """Return a field from an array in the layout of the device."""
    px, py = problem.pitch
    padded = (
        np.moveaxis(data.reshape(problem.nz, py, px, 5), -1, 0)
        if problem.together
        else data.reshape(5, problem.nz, py, px)
    )
    return padded[:, :, : problem.ny, : problem.nx]


def exact_solution(x: Field, y: Field, z: Field) -> Field:
    """Return the exact solution at points of the unit cube, of any shapes that broadcast: (5, ...)."""
    components = []
    for row in _EXACT:
        value = row[0] + np.zeros(np.broadcast_shapes(x.shape, y.shape, z.shape))
        for first, position in ((1, x), (2, y), (3, z)):
            value = value + position * (
                row[first] + position * (row[first + 3] + position * (row[first + 6] + position * row[first + 9]))
            )
        components.append(value)
    return np.array(components)


def _cell_positions(problem: NasProblem) -> tuple[Field, Field, Field]:
    x, y, z = (np.arange(n) / (n - 1) for n in (problem.nx, problem.ny, problem.nz))
    return x[None, None, :], y[None, :, None], z[:, None, None]


def initial_field(problem: NasProblem) -> Field:
    """Return the initial field: the exact solution on the walls, interpolated inside."""
    x, y, z = _cell_positions(problem)
    zero, one = np.zeros((1, 1, 1)), np.ones((1, 1, 1))
    along_x = x * exact_solution(one, y, z) + (1.0 - x) * exact_solution(zero, y, z)
    along_y = y * exact_solution(x, one, z) + (1.0 - y) * exact_solution(x, zero, z)
    along_z = z * exact_solution(x, y, one) + (1.0 - z) * exact_solution(x, y, zero)
    pairs = along_x * along_y + along_x * along_z + along_y * along_z
    field = along_x + along_y + along_z - pairs + along_x * along_y * along_z
    exact = exact_solution(x, y, z)
    for axis in (1, 2, 3):
        for end in (0, -1):
            wall = tuple(end if a == axis else slice(None) for a in range(4))
            field[wall] = exact[wall]
    return field


def forcing(problem: NasProblem) -> Field:
    """Return the forcing for which the exact solution is steady on the grid."""
    return 0.0 - fluxes(exact_solution(*_cell_positions(problem)), problem)  # not -0 on the walls


def fluxes(u: Field, problem: NasProblem) -> Field:
    """Return the differences of fluxes with dissipation at inner points; 0 on the walls."""
    total = np.zeros_like(u)
    for direction, n in enumerate((problem.nx, problem.ny, problem.nz)):
        total += _flux_along(u, direction, n)
    return total


def _flux_along(u: Field, direction: int, n: int) -> Field:
    """Return the differences along x (0), y (1) or z (2) by the formulas of exact_rhs.f."""
    axis, v = 3 - direction, direction + 1
    u = np.moveaxis(u, axis, -1)
    step = float(n - 1)
    velocity = u / u[0]
    speeds = velocity[1] ** 2 + velocity[2] ** 2 + velocity[3] ** 2
    kinetic = 0.5 * (velocity[1] * u[1] + velocity[2] * u[2] + velocity[3] * u[3])
    viscous = _C3C4 * step**2
    flux, spread = np.empty_like(u), np.empty_like(u)
    flux[0], spread[0] = u[v], 0.0
    for m in (1, 2, 3):
        flux[m] = u[m] * velocity[v]
        spread[m] = viscous * (4.0 / 3.0 if m == v else 1.0) * velocity[m]
    flux[v] += _C2 * (u[4] - kinetic)
    flux[4] = velocity[v] * (_C1 * u[4] - _C2 * kinetic)
    spread[4] = viscous * (0.5 * (1.0 - _C1C5) * speeds + velocity[v] ** 2 / 6.0 + _C1C5 * velocity[4])
    spread += _SECOND_ORDER[direction] * step**2 * u
    total = np.zeros_like(u)
    inside = slice(1, -1)
    total[..., inside] = _second_difference(spread) - 0.5 * step * (flux[..., 2:] - flux[..., :-2])
    total[..., inside] -= _DISSIPATION * _fourth_difference(u)
    inner = np.zeros_like(total)
    inner[:, 1:-1, 1:-1, :] = total[:, 1:-1, 1:-1, :]
    return np.moveaxis(inner, -1, axis)


def _second_difference(a: Field) -> Field:
    return a[..., 2:] - 2.0 * a[..., 1:-1] + a[..., :-2]


def _fourth_difference(a: Field) -> Field:
    """Return the fourth difference at inner points; next to the ends, the weights are (5, -4, 1) and (-4, 6, -4, 1)."""
    inner = np.empty_like(a[..., 1:-1])
    inner[..., 1:-1] = a[..., :-4] - 4.0 * a[..., 1:-3] + 6.0 * a[..., 2:-2] - 4.0 * a[..., 3:-1] + a[..., 4:]
    inner[..., 1] -= a[..., 0]
    inner[..., -2] -= a[..., -1]
    inner[..., 0] = 5.0 * a[..., 1] - 4.0 * a[..., 2] + a[..., 3]
    inner[..., -1] = a[..., -4] - 4.0 * a[..., -3] + 5.0 * a[..., -2]
    return inner


def norms(u: Field, problem: NasProblem) -> tuple[Sequence[float], Sequence[float]]:
    """Return the RMS norms of residual and error for each component, as `verify` of the Fortran programs does."""
    inner = (problem.nx - 2) * (problem.ny - 2) * (problem.nz - 2)
    residual = (forcing(problem) + fluxes(u, problem))[:, 1:-1, 1:-1, 1:-1]
    error = u - exact_solution(*_cell_positions(problem))
    squares = ((part**2).sum(axis=(1, 2, 3)) for part in (residual, error))
    residual_norm, error_norm = (np.sqrt(square / inner).tolist() for square in squares)
    return residual_norm, error_norm


class NasFlow(Solver):
    """Common solver of BT and SP: a step is a time step of the approximate factorisation.

    Attributes
    ----------
    cell_operations : approximate warp memory instructions of a step for 32 cells
    cell_seconds : approximate processor time of a step for a cell
    published : norms of the residual and of the error by points along each direction of a cube, steps, length of a step
    """

    problem: NasProblem
    setup_launches = 0
    cell_operations: int
    cell_seconds: float
    published: Mapping[tuple[int, int, float], tuple[Sequence[float], Sequence[float]]]

    @property
    def arrays(self) -> dict[str, Array]:
        """Arrays that both programs have."""
        cells = self.problem.cells
        fields = {name: Array(5 * cells) for name in ("u", "rhs", "forcing")}
        return fields | {name: Array(cells) for name in SCALARS}

    @property
    def constants(self) -> Mapping[str, int | float]:
        problem = self.problem
        return {
            "NX": problem.nx,
            "NY": problem.ny,
            "NZ": problem.nz,
            "PX": problem.pitch[0],
            "PY": problem.pitch[1],
            "DT": problem.dt,
            "TOGETHER": int(problem.together),
        }

    @property
    def steps(self) -> int:
        return self.problem.steps

    @property
    def host_bytes(self) -> int:
        return 40 * 8 * self.problem.cells

    @property
    def traced_operations(self) -> int:
        return self.cell_operations * self.problem.ny * self.problem.nz * -(-self.problem.nx // 32)

    @property
    def native_seconds(self) -> float:
        return self.cell_seconds * self.problem.cells * self.steps

    def set_up(self, device: Device) -> None:
        device.write("u", device_layout(initial_field(self.problem), self.problem))
        device.write("forcing", device_layout(forcing(self.problem), self.problem))

    def launch_rhs(self, device: Device) -> None:
        """Compute the right-hand side from the field and its scalars."""
        grid = self.problem.nx, self.problem.ny, self.problem.nz
        device.launch("rhs_x", grid, GROUP, "u", "rhs", "forcing", *SCALARS)
        for direction in "yz":
            device.launch(f"rhs_{direction}", grid, GROUP, "u", "rhs", *SCALARS)

    def verify(self, device: Device) -> list[SolutionCheck]:
        """Compare the norms of residual and error with the published ones of the class.

        For a problem that is no class, the reference is the unmodified NPB-CPP.
        """
        problem = self.problem
        computed = norms(host_layout(device.read("u"), problem), problem)
        cube = problem.nx == problem.ny == problem.nz
        key = (problem.nx, problem.steps, problem.dt)
        if cube and key in self.published:
            expected, source = self.published[key], "NAS, verify.f"
        else:
            expected, source = problem.expected, "NPB-CPP 4.1"
        return [
            SolutionCheck(f"{what} {m + 1}", computed[which][m], expected[which][m], TOLERANCE, source)
            for which, what in enumerate(("residual", "error"))
            for m in range(5)
        ]
