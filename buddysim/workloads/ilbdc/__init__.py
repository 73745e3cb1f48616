"""360.ilbdc: a lattice-Boltzmann flow over a list of cells."""

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

ORDER = 80
SUMMARY = "D3Q19 lattice Boltzmann over an index list: a channel flow starts up"
PAPER = "360.ilbdc"
WHY = (
    "Populations start out equal and fill with digits as the flow develops; the list stays as it is. The paper's "
    "3 is that of a run that stays near its start, or of memory that isn't used."
)
REFERENCE = {"profile": "lbm_channel"}
REFERENCE_ARRAYS = {"cell flags": "flags", "pdfs[0]": "pdfs0", "pdfs[1]": "pdfs1", "adjacency list": "adjacency"}

_DIRECTIONS: Final = 19
_LINKS: Final = 18
_OMEGA: Final = 1.0
_MAGIC: Final = 1.0 / 12.0  # puts the walls half-way between cells for this flow
_FORCE: Final = 1e-5
_VISCOSITY: Final = (1.0 / _OMEGA - 0.5) / 3.0
_GROUP: Final = 128
_ALONG_X: Final = {2: 1, 4: 1, 5: 1, 10: 1, 17: 1, 3: -1, 6: -1, 7: -1, 11: -1, 16: -1}


@dataclass(frozen=True)
class IlbdcProblem:
    """A problem: cells along x, y and z (with the walls at both ends of z), and time steps."""

    nx: int
    ny: int
    nz: int
    steps: int


class LatticeBoltzmann(Solver):
    """Lattice-Boltzmann solver: a step is collision, propagation, then the force. Two population arrays alternate."""

    problem: IlbdcProblem
    sources = (Path(__file__).parent / "ilbdc.cl",)
    setup_launches = 2
    step_launches = 2

    @property
    def _cells(self) -> int:
        return self.problem.nx * self.problem.ny * (self.problem.nz - 2)

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        everywhere, cells = self.problem.nx * self.problem.ny * self.problem.nz, self._cells
        return {
            "flags": Array(everywhere, np.int32),
            "pdfs0": Array(_DIRECTIONS * cells),
            "pdfs1": Array(_DIRECTIONS * cells),
            "grid": Array(everywhere, np.uint32),
            "coords": Array(3 * cells, np.uint32),
            "adjacency": Array(_LINKS * cells, np.uint32),
        }

    @property
    def constants(self) -> Mapping[str, int | float]:
        odd = 1.0 / (0.5 + _MAGIC / (1.0 / _OMEGA - 0.5))
        sizes = {"NX": self.problem.nx, "NY": self.problem.ny, "CELLS": self._cells}
        return sizes | {"OMEGA": _OMEGA, "OMEGA_ODD": odd, "FORCE": _FORCE}

    @property
    def steps(self) -> int:
        return self.problem.steps

    @property
    def host_bytes(self) -> int:
        return 40 * self._cells + 8 * _DIRECTIONS * self._cells

    @property
    def traced_operations(self) -> int:
        return -(-self._cells // 32) * (2 * _DIRECTIONS + _LINKS + 2 * len(_ALONG_X))

    @property
    def native_seconds(self) -> float:
        return 1.1e-7 * self._cells * self.steps

    def set_up(self, device: Device) -> None:
        nx, ny, nz = self.problem.nx, self.problem.ny, self.problem.nz
        flags = np.ones((nz, ny, nx), np.int32)
        flags[0] = flags[-1] = 0
        # Cells are numbered with z fastest, as the loops of lbm-benchmark-kernels do it.
        coords = np.stack(np.meshgrid(np.arange(nx), np.arange(ny), np.arange(1, nz - 1), indexing="ij"), -1)
        coords = coords.reshape(-1, 3)
        grid = np.zeros((nz, ny, nx), np.uint32)
        grid[coords[:, 2], coords[:, 1], coords[:, 0]] = np.arange(len(coords))
        device.write("flags", flags)
        device.write("grid", grid)
        device.write("coords", coords)
        device.launch("connect", self._cells, _GROUP, "flags", "grid", "coords", "adjacency")
        device.launch("rest", self._cells, _GROUP, "pdfs0")

    def step(self, device: Device, number: int) -> None:
        source, target = ("pdfs0", "pdfs1") if number % 2 == 0 else ("pdfs1", "pdfs0")
        device.launch("collide_and_push", self._cells, _GROUP, source, target, "adjacency")
        device.launch("force", self._cells, _GROUP, target)

    def verify(self, device: Device) -> list[SolutionCheck]:
        pdfs = device.read(f"pdfs{self.steps % 2}").reshape(_DIRECTIONS, -1, self.problem.nz - 2)
        velocity = sum(sign * pdfs[d] for d, sign in _ALONG_X.items())
        exact = self._exact()
        misfit = float(np.linalg.norm(velocity - exact) / np.linalg.norm(np.broadcast_to(exact, velocity.shape)))
        return [
            SolutionCheck("misfit of the velocity against the exact start-up", misfit, 0.0, 0.01, "Poiseuille flow"),
            SolutionCheck("mean density", float(pdfs.sum()) / self._cells, 1.0, 1e-10, "conservation of mass"),
        ]

    def _exact(self) -> NDArray[np.float64]:
        """Return the velocity along x by z of a fluid under a force, initially at rest, with walls half a cell away."""
        height = self.problem.nz - 2
        z = np.arange(height) + 0.5
        profile: NDArray[np.float64] = _FORCE / (2 * _VISCOSITY) * z * (height - z)
        for n in range(1, 400, 2):
            decay = np.exp(-((n * np.pi / height) ** 2) * _VISCOSITY * self.steps)
            profile -= 4 * _FORCE * height**2 / (_VISCOSITY * (n * np.pi) ** 3) * np.sin(n * np.pi * z / height) * decay
        return profile


SOLVER = LatticeBoltzmann
PROBLEMS = {
    "small": {"profile": IlbdcProblem(20, 20, 20, 200), "replay": IlbdcProblem(24, 16, 18, 200)},
    "medium": {"profile": IlbdcProblem(80, 80, 80, 400), "replay": IlbdcProblem(76, 84, 76, 400)},
    "paper": {"profile": IlbdcProblem(170, 170, 172, 1000), "replay": IlbdcProblem(160, 170, 172, 1000)},
    "reference": {"profile": IlbdcProblem(80, 80, 80, 400)},
}
