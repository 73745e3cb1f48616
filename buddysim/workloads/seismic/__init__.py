"""355.seismic: elastic waves with absorbing layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buddysim.workloads.device import Device
from buddysim.workloads.seismic.exact import velocities
from buddysim.workloads.seismic.layers import coefficients
from buddysim.workloads.solver import Array, SolutionCheck, Solver

ORDER = 40
SUMMARY = "elastic waves from a point force, finite differences with absorbing layers"
PAPER = "355.seismic"
WHY = (
    "Zero until the wave arrives; later only what the layers remember of the interior is. The paper's run falls "
    "later: its domain is larger, so the wave needs more of the run to fill it."
)
REFERENCE = {"profile": "seismic3d_dp"}

_SPACING: Final = 10.0  # m
_STEP: Final = 1.6e-3  # s
_P_SPEED: Final = 3300.0  # m/s
_S_SPEED: Final = _P_SPEED / 1.732
_RHO: Final = 2800.0  # kg/m3
_FREQUENCY: Final = 7.0  # Hz
_DELAY: Final = 1.2 / _FREQUENCY  # s
_AMPLITUDE: Final = 1e7
_ANGLE: Final = np.radians(135.0)
_RECEIVER: Final = 10  # points from the source, along y
_GROUP: Final = (32, 4, 1)
_KERNELS: Final = 8
_FIELDS: Final = ("vx", "vy", "vz", "sigmaxx", "sigmayy", "sigmazz", "sigmaxy", "sigmaxz", "sigmayz")
_MEMORIES: Final = (
    *(f"memory_dv{of}_d{by}" for of in "xyz" for by in "xyz"),
    *(f"memory_dsigma{of}" for of in ("xx_dx", "yy_dy", "zz_dz", "xy_dx", "xy_dy", "xz_dx", "xz_dz", "yz_dy", "yz_dz")),
)
_STRESS: Final = (
    ("stress_normal", "vx vy vz sigmaxx sigmayy sigmazz memory_dvx_dx memory_dvy_dy memory_dvz_dz", "xyz"),
    ("stress_xy", "vx vy sigmaxy memory_dvy_dx memory_dvx_dy", "xy"),
    ("stress_xz", "vx vz sigmaxz memory_dvz_dx memory_dvx_dz", "xz"),
    ("stress_yz", "vy vz sigmayz memory_dvz_dy memory_dvy_dz", "yz"),
)
_VELOCITY: Final = (
    ("velocity_x", "vx sigmaxx sigmaxy sigmaxz memory_dsigmaxx_dx memory_dsigmaxy_dy memory_dsigmaxz_dz", "xyz"),
    ("velocity_y", "vy sigmaxy sigmayy sigmayz memory_dsigmaxy_dx memory_dsigmayy_dy memory_dsigmayz_dz", "xyz"),
    ("velocity_z", "vz sigmaxz sigmayz sigmazz memory_dsigmaxz_dx memory_dsigmayz_dy memory_dsigmazz_dz", "xyz"),
)
# Planes that a slab needs before each kernel: fields, and whether they come from the slab behind.
_BEFORE_STRESS: Final = {"vx": False, "vy": False, "vz": True}
_BEFORE_VELOCITY: Final = {"sigmazz": False, "sigmayz": True, "sigmaxz": True}


@dataclass(frozen=True)
class SeismicProblem:
    """A problem: points along x, y, z, time steps, and slabs along z with separate arrays, like MPI ranks."""

    nx: int
    ny: int
    nz: int
    steps: int
    slabs: int = 1


class ElasticWaves(Solver):
    """Elastic wave solver with the arrays, names and layout of SEISMIC_CPML (3D, isotropic)."""

    problem: SeismicProblem
    sources = (Path(__file__).parent / "seismic.cl",)
    setup_launches = 0

    @property
    def _planes(self) -> int:
        return self.problem.nz // self.problem.slabs

    @property
    def step_launches(self) -> int:
        return _KERNELS * self.problem.slabs

    @property
    def _source(self) -> tuple[int, int, int]:
        """Position of the source, counted from 1 as in SEISMIC_CPML."""
        return self.problem.nx - 21, 2 * self.problem.ny // 3 + 1, self.problem.nz // 2

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        plane = self.problem.nx * self.problem.ny
        arrays: dict[str, Array] = {}
        for slab in range(self.problem.slabs):
            arrays |= {_of(name, slab): Array(plane * self._planes) for name in _MEMORIES}
            arrays |= {_of(name, slab): Array(plane * (self._planes + 2)) for name in _FIELDS}
        sizes = {"x_pml": self.problem.nx, "y_pml": self.problem.ny, "z_pml": self.problem.nz}
        arrays |= {name: Array(6 * n) for name, n in sizes.items()}
        return arrays | {"seismogram": Array(2 * self.steps)}

    @property
    def constants(self) -> Mapping[str, int | float]:
        x, y, z = self._source
        mu = _RHO * _S_SPEED**2
        return {
            "NX": self.problem.nx,
            "NY": self.problem.ny,
            "NZ": self.problem.nz,
            "DT": _STEP,
            "RHO": _RHO,
            "MU": mu,
            "LAMBDA": _RHO * (_P_SPEED**2 - 2 * _S_SPEED**2),
            "LAMBDA_2MU": _RHO * _P_SPEED**2,
            "ONE_OVER_H": 1.0 / _SPACING,
            "SOURCE_X": x,
            "SOURCE_Y": y,
            "SOURCE_Z": z,
            "RECEIVER_X": x,
            "RECEIVER_Y": y - _RECEIVER,
        }

    @property
    def steps(self) -> int:
        return self.problem.steps

    @property
    def _cells(self) -> int:
        return self.problem.nx * self.problem.ny * self.problem.nz

    @property
    def traced_operations(self) -> int:
        # 144 accesses of each point: 51 of fields, 36 of memories, 57 of coefficients. Rows are whole warps.
        rows = self.problem.ny * self.problem.nz * -(-self.problem.nx // 32)
        return 144 * rows

    @property
    def native_seconds(self) -> float:
        return 9e-8 * self._cells * self.steps

    def set_up(self, device: Device) -> None:
        for direction, n in (("x", self.problem.nx), ("y", self.problem.ny), ("z", self.problem.nz)):
            device.write(f"{direction}_pml", coefficients(n, _SPACING, _STEP, _P_SPEED, _FREQUENCY))

    def step(self, device: Device, number: int) -> None:
        self._exchange(device, _BEFORE_STRESS)
        self._launch(device, _STRESS)
        self._exchange(device, _BEFORE_VELOCITY)
        self._launch(device, _VELOCITY)
        force = float(_force(np.array(number * _STEP)))
        for slab in range(self.problem.slabs):
            names = [_of(name, slab) for name in ("vx", "vy", "vz")]
            of_force = (force * float(np.sin(_ANGLE)), force * float(np.cos(_ANGLE)), number)
            device.launch("finish", self._size, _GROUP, *names, "seismogram", *of_force, *self._slab_range(slab))

    @property
    def _size(self) -> tuple[int, int, int]:
        return self.problem.nx, self.problem.ny, self._planes

    def _slab_range(self, slab: int) -> tuple[int, int]:
        return self._planes, slab * self._planes

    def _launch(self, device: Device, kernels: tuple[tuple[str, str, str], ...]) -> None:
        for kernel, fields, directions in kernels:
            for slab in range(self.problem.slabs):
                names = [_of(name, slab) for name in fields.split()]
                layers = [f"{direction}_pml" for direction in directions]
                device.launch(kernel, self._size, _GROUP, *names, *layers, *self._slab_range(slab))

    def _exchange(self, device: Device, fields: Mapping[str, bool]) -> None:
        plane, planes = self.problem.nx * self.problem.ny, self._planes
        for slab in range(self.problem.slabs - 1):
            for name, from_behind in fields.items():
                if from_behind:
                    device.copy(_of(name, slab), planes * plane, _of(name, slab + 1), 0, plane)
                else:
                    device.copy(_of(name, slab + 1), plane, _of(name, slab), (planes + 1) * plane, plane)

    def verify(self, device: Device) -> list[SolutionCheck]:
        seen = device.read("seismogram").reshape(-1, 2)
        exact = self._exact()
        return [
            SolutionCheck(
                f"misfit of {name} against the exact solution", _misfit(seen[:, at], exact[:, at]), 0.0, limit, "Stokes"
            )
            for at, (name, limit) in enumerate((("vx", 0.03), ("vy", 0.03)))
        ]

    def _exact(self) -> NDArray[np.float64]:
        """Return the exact velocities along x and y at the receiver's points of the staggered grid: (steps, 2)."""
        # A force is applied before the velocity of the step's end is stored, which is half a step later.
        times = (np.arange(self.steps) + 0.5) * _STEP
        away = np.array([0.0, -_RECEIVER * _SPACING, 0.0])
        half = np.array([0.5, 0.5, 0.0]) * _SPACING  # distance from the points of vx to those of vy
        volume = _SPACING**3
        total = np.zeros((self.steps, 2))
        for direction, component in enumerate((float(np.sin(_ANGLE)), float(np.cos(_ANGLE)))):
            for of in range(2):
                offset = away + (of - direction) * half
                velocity = velocities(offset, direction, _force_rate, times, _RHO, _P_SPEED, _S_SPEED)
                total[:, of] += volume * component * velocity[:, of]
        return total


def _of(name: str, slab: int) -> str:
    return name if not slab else f"{name}.{slab}"


def _force(time: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the density of the force, N/m3, the first derivative of a Gaussian."""
    a = (np.pi * _FREQUENCY) ** 2
    late: NDArray[np.floating[Any]] = time - _DELAY
    force: NDArray[np.float64] = -_AMPLITUDE * 2 * a * late * np.exp(-a * late**2)
    return force


def _force_rate(time: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    a = (np.pi * _FREQUENCY) ** 2
    late = time - _DELAY
    rate: NDArray[np.float64] = -_AMPLITUDE * 2 * a * (1 - 2 * a * late**2) * np.exp(-a * late**2)
    return np.where(time >= 0, rate, 0.0)


def _misfit(seen: NDArray[np.float64], exact: NDArray[np.float64]) -> float:
    """Return the RMS difference of two signals, relative to the reference."""
    return float(np.linalg.norm(seen - exact) / np.linalg.norm(exact))


SOLVER = ElasticWaves
PROBLEMS = {
    "small": {"profile": SeismicProblem(61, 71, 44, 250), "replay": SeismicProblem(57, 75, 44, 250)},
    "medium": {"profile": SeismicProblem(96, 161, 60, 500), "replay": SeismicProblem(92, 151, 56, 500)},
    "paper": {"profile": SeismicProblem(101, 641, 202, 2500), "replay": SeismicProblem(101, 601, 200, 2500)},
    "reference": {"profile": SeismicProblem(101, 161, 60, 1000, 2)},
}
