"""351.palm: large-eddy simulation of the atmospheric boundary layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buddysim.workloads.device import Device
from buddysim.workloads.solver import Array, SolutionCheck, Solver

ORDER = 10
SUMMARY = "large-eddy simulation of the atmospheric boundary layer after PALM, heated from below"
PAPER = "351.palm"
WHY = (
    "Fields of full precision once the first steps have spread the disturbances. The paper's 2.7 must be that of "
    "fields of the port that are not in use, or of memory that isn't used."
)

PART = "one of a step's three stages: a whole step has 11.8 M at medium, 9.8 M at 64 MiB"

_GHOSTS: Final = 3
_DX: Final = 50.0  # m
_DZ: Final = 25.0
_DT: Final = 2.0  # s
_HEAT_FLUX: Final = 0.1  # K m/s
_ROUGHNESS: Final = 0.1  # m
_WIND: Final = 5.0  # m/s
_REFERENCE: Final = 300.0  # K
_LAPSE: Final = 0.006  # K/m, above the mixed layer
_FIRST_ENERGY: Final = 0.1  # m2/s2
_DISTURBANCE: Final = 0.25  # m/s, largest
_STAGES: Final = 3
_NOW: Final = (1.0 / 3.0, 15.0 / 16.0, 8.0 / 15.0)
_BEFORE: Final = (0.0, -25.0 / 48.0, 1.0 / 15.0)
_WEIGHTS: Final = (1.0 / 6.0, 3.0 / 10.0, 8.0 / 15.0)  # of the stages' tendencies in a step
_VARIABLES: Final = ("u", "v", "w", "pt", "e")
_GROUP: Final = (32, 4, 1)
_LINE_GROUP: Final = (32, 1)
_STAGE_LAUNCHES: Final = 5 * 3 + 1 + 4 + 1 + 1 + 1 + 1 + 3 + 1 + 2
_DIVERGENCE: Final = 1e-12  # 1/s, rounding of differences of winds over metres


@dataclass(frozen=True)
class PalmProblem:
    """A problem: cells along x and y (powers of 2) and z, time steps, seed of the disturbances."""

    nx: int
    ny: int
    nz: int
    steps: int
    seed: int


class BoundaryLayer(Solver):
    """PALM: a step has three Runge-Kutta stages; the trace has the second stage of the middle step."""

    problem: PalmProblem
    sources = (Path(__file__).parent / "palm.cl",)
    step_launches = _STAGES * _STAGE_LAUNCHES
    setup_launches = len(_VARIABLES) + 3

    def __init__(self, problem: PalmProblem) -> None:
        super().__init__(problem)
        self._first_heat = self._first_wind = 0.0
        self._taken = 0.0  # momentum through the ground, m2/s

    @property
    def _cells(self) -> int:
        return self.problem.nx * self.problem.ny * self.problem.nz

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        wide = (self.problem.nx + 2 * _GHOSTS) * (self.problem.ny + 2 * _GHOSTS) * (self.problem.nz + 2)
        arrays: dict[str, Array] = {}
        for name in _VARIABLES:
            arrays |= {name: Array(wide), f"{name}_p": Array(wide), f"t{name}_m": Array(wide)}
        arrays |= {name: Array(wide) for name in ("tend", "km", "kh", "p", "d")}
        return (
            arrays
            | {name: Array(self._cells) for name in ("ar_real", "ar_imaginary", "tri")}
            | {"usws": Array(self.problem.nx * self.problem.ny)}
        )

    @property
    def constants(self) -> Mapping[str, int | float]:
        nx, ny = self.problem.nx, self.problem.ny
        sizes = {
            "NX": nx,
            "NY": ny,
            "NZ": self.problem.nz,
            "LOG_NX": nx.bit_length() - 1,
            "LOG_NY": ny.bit_length() - 1,
        }
        return sizes | {"DX": _DX, "DZ": _DZ, "HEAT_FLUX": _HEAT_FLUX, "ROUGHNESS": _ROUGHNESS}

    @property
    def steps(self) -> int:
        return self.problem.steps

    @property
    def window(self) -> tuple[int, int]:
        first = self.setup_launches + self.steps // 2 * self.step_launches + _STAGE_LAUNCHES
        return first, first + _STAGE_LAUNCHES

    @property
    def host_bytes(self) -> int:
        return 12 * 8 * self._cells

    @property
    def traced_operations(self) -> int:
        return 380 * self.problem.nx * self.problem.ny * -(-self.problem.nz // 32)

    @property
    def native_seconds(self) -> float:
        return 2e-6 * self._cells * self.steps

    def set_up(self, device: Device) -> None:
        nx, ny, nz = self.problem.nx, self.problem.ny, self.problem.nz
        height = (np.arange(nz + 2) - 0.5) * _DZ
        mixed = height < 0.5 * nz * _DZ
        random = np.random.default_rng(self.problem.seed)
        fields = {name: np.zeros((nx, ny, nz + 2)) for name in _VARIABLES}
        for name in ("u", "v"):
            fields[name] += random.uniform(-_DISTURBANCE, _DISTURBANCE, fields[name].shape) * mixed
        fields["u"] += _WIND
        fields["pt"] += _REFERENCE + np.where(mixed, 0.0, _LAPSE * (height - 0.5 * nz * _DZ))
        fields["e"] += _FIRST_ENERGY * mixed
        self._first_heat, self._first_wind = (float(fields[name][:, :, 1:-1].mean()) for name in ("pt", "u"))
        for name, field in fields.items():
            data = np.pad(field, ((_GHOSTS, _GHOSTS), (_GHOSTS, _GHOSTS), (0, 0)))
            device.write(name, data)
            device.write(f"{name}_p", data)  # the layers of w at ground and top stay
            self._exchange(device, name)
        device.launch("diffusivities", self._size, _GROUP, "pt", "e", "km", "kh")
        self._exchange(device, "km")
        self._exchange(device, "kh")

    def step(self, device: Device, number: int) -> None:
        for stage in range(_STAGES):
            turned = (number * _STAGES + stage) % 2 == 1
            now = {name: f"{name}_p" if turned else name for name in _VARIABLES}
            after = {name: name if turned else f"{name}_p" for name in _VARIABLES}
            self._stage(device, stage, now, after)

    def _stage(self, device: Device, stage: int, now: Mapping[str, str], after: Mapping[str, str]) -> None:
        wind = (now["u"], now["v"], now["w"])
        inputs = {
            "u": (*wind, "km"),
            "v": (*wind, "km"),
            "w": (*wind, now["pt"], "km"),
            "pt": (*wind, now["pt"], "kh"),
            "e": (*wind, now["pt"], now["e"], "km", "kh"),
        }
        for name in _VARIABLES:
            outputs = ("tend", "usws") if name == "u" else ("tend",)
            device.launch(f"tendency_{name}", self._size, _GROUP, *inputs[name], *outputs)
            if name == "u":
                self._taken += _DT * _WEIGHTS[stage] * float(device.read("usws").mean())
            lengths = (_DT * _NOW[stage], _DT * _BEFORE[stage])
            least = 0.0 if name == "e" else -1e30
            previous_tendency = f"t{name}_m"
            device.launch(
                "advance_variable",
                self._size,
                _GROUP,
                now[name],
                "tend",
                previous_tendency,
                after[name],
                *lengths,
                stage,
                least,
            )
            self._exchange(device, after[name])
        self._correct_wind(device, after)
        device.launch("diffusivities", self._size, _GROUP, after["pt"], after["e"], "km", "kh")
        self._exchange(device, "km")
        self._exchange(device, "kh")

    def _correct_wind(self, device: Device, after: Mapping[str, str]) -> None:
        """Remove the divergence of the wind (PALM's `pres` with `poisfft`)."""
        nx, ny, nz = self.problem.nx, self.problem.ny, self.problem.nz
        wind, spectrum = (after["u"], after["v"], after["w"]), ("ar_real", "ar_imaginary")
        device.launch("divergence", self._size, _GROUP, *wind, "d", *spectrum)
        device.launch("transform_x", (nz, ny), _LINE_GROUP, *spectrum, -1.0, 1.0)
        device.launch("transform_y", (nz, nx), _LINE_GROUP, *spectrum, -1.0, 1.0)
        device.launch("columns", (ny, nx), _LINE_GROUP, *spectrum, "tri")
        device.launch("transform_y", (nz, nx), _LINE_GROUP, *spectrum, 1.0, 1.0 / ny)
        device.launch("transform_x", (nz, ny), _LINE_GROUP, *spectrum, 1.0, 1.0 / nx)
        device.launch("set_pressure", self._size, _GROUP, "ar_real", "p")
        self._exchange(device, "p")
        device.launch("correct", self._size, _GROUP, *wind, "p")
        for name in wind:
            self._exchange(device, name)

    @property
    def _size(self) -> tuple[int, int, int]:
        return self.problem.nz, self.problem.ny, self.problem.nx

    def _exchange(self, device: Device, name: str) -> None:
        size = self.problem.nz + 2, self.problem.ny + 2 * _GHOSTS, self.problem.nx + 2 * _GHOSTS
        device.launch("exchange", size, _GROUP, name, int(not name.startswith("w")))

    def verify(self, device: Device) -> list[SolutionCheck]:
        suffix = "_p" if self.steps * _STAGES % 2 else ""
        field = {name: self._inside(device.read(f"{name}{suffix}")) for name in _VARIABLES}
        u, v, w = field["u"], field["v"], field["w"]
        divergence = (np.roll(u, -1, 0) - u + np.roll(v, -1, 1) - v)[:, :, 1:-1] / _DX + np.diff(w, axis=2)[
            :, :, :-1
        ] / _DZ
        heat = float(field["pt"][:, :, 1:-1].mean()) - self._first_heat
        height = self.problem.nz * _DZ
        supplied = _HEAT_FLUX * _DT * self.steps / height
        faster = float(u[:, :, 1:-1].mean()) - self._first_wind
        return [
            SolutionCheck(
                "largest divergence, 1/s", float(np.abs(divergence).max()), 0.0, _DIVERGENCE, "incompressibility"
            ),
            SolutionCheck("warming, K", heat, supplied, 1e-8, "the heat flux from the ground"),
            SolutionCheck("change of the mean wind, m/s", faster, self._taken / height, 1e-8, "the flux at the ground"),
            SolutionCheck(
                "wind through ground and top", float(np.abs(w[:, :, [0, -2]]).max()), 0.0, 0.0, "the boundary"
            ),
        ]

    def _inside(self, data: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a field without ghost columns: (nx, ny, nz + 2)."""
        nx, ny = self.problem.nx + 2 * _GHOSTS, self.problem.ny + 2 * _GHOSTS
        return data.reshape(nx, ny, -1)[_GHOSTS:-_GHOSTS, _GHOSTS:-_GHOSTS]


SOLVER = BoundaryLayer
PROBLEMS = {
    "small": {"profile": PalmProblem(16, 16, 32, 10, 1), "replay": PalmProblem(16, 8, 32, 10, 2)},
    "medium": {"profile": PalmProblem(64, 64, 96, 40, 1), "replay": PalmProblem(32, 128, 96, 40, 2)},
    "paper": {"profile": PalmProblem(256, 256, 224, 400, 1), "replay": PalmProblem(256, 256, 208, 400, 2)},
}
