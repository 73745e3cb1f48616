"""FF_Lulesh: Lagrangian shock hydrodynamics, the Sedov problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buddysim.workloads.device import Device
from buddysim.workloads.lulesh import mesh
from buddysim.workloads.solver import Array, SolutionCheck, Solver

ORDER = 100
SUMMARY = "LULESH: Lagrangian shock hydrodynamics on hexahedra, the Sedov problem"
PAPER = "FF_Lulesh"
WHY = (
    "Nearly all is at rest in the first steps, so they hold what the paper reports. Forces on corners, which "
    "ports keep, are zero where all is at rest; the other arrays alone have 5.3."
)
REFERENCE = {"profile": "lulesh_i100", "replay": "lulesh_step"}

_GROUP: Final = 128
_STOP_TIME: Final = 1e-2
_TOLERANCE: Final = 1e-6  # LULESH prints seven digits of the energy
_SYMMETRY: Final = 1e-8  # largest relative difference that LULESH's documentation accepts
_COORDINATES: Final = ("x", "y", "z")
_VELOCITIES: Final = ("xd", "yd", "zd")
_ACCELERATIONS: Final = ("xdd", "ydd", "zdd")
_FORCES: Final = ("fx", "fy", "fz")
_CORNER_FORCES: Final = ("fx_elem", "fy_elem", "fz_elem")
_NEIGHBOURS: Final = ("lxim", "lxip", "letam", "letap", "lzetam", "lzetap")
_STATE: Final = ("e", "p", "q", "ql", "qq", "v", "volo", "delv", "vdov", "arealg", "ss", "elemMass", "vnew")
_STRAINS: Final = ("dxx", "dyy", "dzz")
_GRADIENTS: Final = ("delx_xi", "delx_eta", "delx_zeta", "delv_xi", "delv_eta", "delv_zeta")
# The energy of the first element by edge and steps, of LULESH 2.0.3 without MPI and OpenMP.
_ENERGY: Final = {
    (8, 163): 1.788182e4,
    (10, 231): 2.720531e4,
    (45, 100): 4.464018e6,
    (45, 1477): 4.234875e5,
    (56, 120): 7.625206e6,
    (60, 100): 1.058138e7,
}
#: LULESH's names of the arrays, by their names in the reference.
REFERENCE_ARRAYS = {
    f"m_{name}": name
    for name in (
        *("regNumList", "nodelist", "elemBC", "nodalMass"),
        *(*_NEIGHBOURS, *_STATE, *_COORDINATES, *_VELOCITIES, *_ACCELERATIONS, *_FORCES),
    )
}


@dataclass(frozen=True)
class LuleshProblem:
    """A problem: elements along an edge, and time steps."""

    edge: int
    steps: int


class ShockHydrodynamics(Solver):
    """LULESH: a step is a time step, whose length depends on the previous state."""

    problem: LuleshProblem
    sources = (Path(__file__).parent / "lulesh.cl",)
    setup_launches = 0
    step_launches = 13

    def __init__(self, problem: LuleshProblem) -> None:
        super().__init__(problem)
        self._time = self._step = 0.0
        self._volume = (1.125 / problem.edge) ** 3

    @property
    def _elements(self) -> int:
        return self.problem.edge**3

    @property
    def _nodes(self) -> int:
        return (self.problem.edge + 1) ** 3

    @property
    def _groups(self) -> int:
        return -(-self._elements // _GROUP)

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        elements, nodes = self._elements, self._nodes
        arrays = {"regNumList": Array(elements, np.int32), "nodelist": Array(8 * elements, np.int32)}
        arrays |= {name: Array(elements, np.int32) for name in (*_NEIGHBOURS, "elemBC")}
        arrays |= {name: Array(elements) for name in _STATE}
        arrays |= {name: Array(nodes) for name in (*_COORDINATES, *_VELOCITIES, *_ACCELERATIONS, *_FORCES, "nodalMass")}
        arrays |= {name: Array((self.problem.edge + 1) ** 2, np.int32) for name in ("symmX", "symmY", "symmZ")}
        arrays |= {"regElemlist": Array(elements, np.int32), "regReps": Array(elements, np.int32)}
        arrays |= {"nodeElemStart": Array(nodes + 1, np.int32), "nodeElemCornerList": Array(8 * elements, np.int32)}
        arrays |= {name: Array(8 * elements) for name in _CORNER_FORCES}
        arrays |= {name: Array(elements) for name in (*_STRAINS, *_GRADIENTS)}
        return arrays | {"least": Array(2 * self._groups), "steps": Array(2)}

    @property
    def constants(self) -> Mapping[str, int | float]:
        return {
            "EDGE": self.problem.edge,
            "ELEMENTS": self._elements,
            "NODES": self._nodes,
            "GROUP": _GROUP,
            "GROUPS": self._groups,
        }

    @property
    def steps(self) -> int:
        return self.problem.steps

    @property
    def host_bytes(self) -> int:
        return 400 * self._elements

    @property
    def traced_operations(self) -> int:
        return 390 * self._elements // 32

    @property
    def native_seconds(self) -> float:
        return 1e-6 * self._elements * self.steps

    def set_up(self, device: Device) -> None:
        edge, elements = self.problem.edge, self._elements
        nodelist = mesh.node_list(edge)
        starts, corners = mesh.corner_lists(nodelist, self._nodes)
        regions = mesh.region_numbers(elements)
        by_region = np.argsort(regions, kind="stable")
        volumes = self._volumes(nodelist)
        integers: dict[str, NDArray[Any]] = {
            "regNumList": regions,
            "nodelist": nodelist,
            "elemBC": mesh.boundary_conditions(edge),
            "regElemlist": by_region,
            "regReps": mesh.repetitions(regions[by_region]),
            "nodeElemStart": starts,
            "nodeElemCornerList": corners,
        }
        masses = np.bincount(nodelist.ravel(), np.repeat(volumes / 8.0, 8), minlength=self._nodes)
        energy = 3.948746e7 * (edge / 45.0) ** 3
        fields = {"volo": volumes, "elemMass": volumes, "nodalMass": masses, "e": np.array([energy])}
        values: dict[str, NDArray[Any]] = (
            integers | mesh.neighbours(edge) | mesh.symmetry_planes(edge) | mesh.coordinates(edge) | fields
        )
        for name, array in values.items():
            device.write(name, array)
        device.fill("v", 1.0)
        self._step = float(0.5 * np.cbrt(volumes[0]) / np.sqrt(2.0 * energy))

    def _volumes(self, nodelist: mesh.Integers) -> NDArray[np.float64]:
        """Return the volumes of all elements by the kernels' formula, with the same rounding."""
        coordinates = mesh.coordinates(self.problem.edge)
        corner = np.stack([coordinates[name][nodelist] for name in "xyz"], -1)  # (elements, 8, 3)

        def of(first: tuple[int, ...], second: tuple[int, int], third: tuple[int, int]) -> NDArray[np.float64]:
            sides = corner[:, first[0]] - corner[:, first[1]] + (corner[:, first[2]] - corner[:, first[3]])
            b, c = (corner[:, pair[0]] - corner[:, pair[1]] for pair in (second, third))
            return (
                sides[:, 0] * (b[:, 1] * c[:, 2] - c[:, 1] * b[:, 2])
                + sides[:, 1] * (c[:, 0] * b[:, 2] - b[:, 0] * c[:, 2])
                + sides[:, 2] * (b[:, 0] * c[:, 1] - c[:, 0] * b[:, 1])
            )

        total = of((3, 1, 7, 2), (6, 3), (2, 0)) + of((4, 3, 5, 7), (6, 4), (7, 0)) + of((1, 4, 2, 5), (6, 1), (5, 0))
        volumes: NDArray[np.float64] = total * (1.0 / 12.0)
        return volumes

    def step(self, device: Device, number: int) -> None:
        dt = self._next_step(device, number)
        elements, nodes, plane = self._elements, self._nodes, (self.problem.edge + 1) ** 2
        motion = ("nodelist", *_COORDINATES, *_VELOCITIES)
        device.launch(
            "corner_forces", elements, _GROUP, *motion, "p", "q", "ss", "elemMass", "volo", "v", *_CORNER_FORCES
        )
        device.launch("node_forces", nodes, _GROUP, "nodeElemStart", "nodeElemCornerList", *_CORNER_FORCES, *_FORCES)
        device.launch("accelerations", nodes, _GROUP, *_FORCES, "nodalMass", *_ACCELERATIONS)
        device.launch("symmetry", plane, _GROUP, "symmX", "symmY", "symmZ", *_ACCELERATIONS)
        device.launch("velocities", nodes, _GROUP, *_VELOCITIES, *_ACCELERATIONS, dt)
        device.launch("positions", nodes, _GROUP, *_COORDINATES, *_VELOCITIES, dt)
        shapes = ("volo", "v", "vnew", "delv", "arealg", "vdov", *_STRAINS)
        device.launch("kinematics", elements, _GROUP, *motion, *shapes, dt)
        device.launch("q_gradients", elements, _GROUP, *motion, "volo", "vnew", *_GRADIENTS)
        masses = ("vdov", "elemMass", "volo", "vnew", "ql", "qq")
        device.launch("q_regions", elements, _GROUP, "regElemlist", "elemBC", *_NEIGHBOURS, *_GRADIENTS, *masses)
        state = ("vnew", "delv", "ql", "qq", "e", "p", "q", "ss")
        device.launch("materials", elements, _GROUP, "regElemlist", "regReps", *state)
        device.launch("volumes", elements, _GROUP, "vnew", "v")
        device.launch("constraints", elements, _GROUP, "regElemlist", "ss", "vdov", "arealg", "least")
        device.launch("min_of_all", _GROUP, _GROUP, "least", "steps")

    def _next_step(self, device: Device, number: int) -> float:
        """Return the length of the next time step (`TimeIncrement`)."""
        left = _STOP_TIME - self._time
        if number:
            courant, hydro = device.read("steps").tolist()
            step = 1e20
            if courant < step:
                step = courant / 2.0
            if hydro < step:
                step = hydro * 2.0 / 3.0
            ratio = step / self._step
            if 1.0 <= ratio < 1.1:
                step = self._step
            elif ratio > 1.2:
                step = self._step * 1.2
            self._step = min(step, 1e-2)
        if self._step < left < 4.0 * self._step / 3.0:
            left = 2.0 * self._step / 3.0
        self._step = min(self._step, left)
        self._time += self._step
        return self._step

    def verify(self, device: Device) -> list[SolutionCheck]:
        edge = self.problem.edge
        energy = device.read("e", edge * edge).reshape(edge, edge)
        difference = np.abs(energy - energy.T) / np.where(energy.T != 0.0, energy.T, 1.0)
        origin = float(energy[0, 0])
        return [
            SolutionCheck("energy of the first element", origin, _ENERGY[edge, self.steps], _TOLERANCE, "LULESH 2.0.3"),
            SolutionCheck("asymmetry of the plane z = 0", float(difference.max()), 0.0, _SYMMETRY, "LULESH's own test"),
        ]


SOLVER = ShockHydrodynamics
PROBLEMS = {
    "small": {"profile": LuleshProblem(10, 231), "replay": LuleshProblem(8, 163)},
    "medium": {"profile": LuleshProblem(60, 100), "replay": LuleshProblem(56, 120)},
    "paper": {"profile": LuleshProblem(138, 100), "replay": LuleshProblem(132, 120)},
    "reference": {"profile": LuleshProblem(45, 100), "replay": LuleshProblem(45, 1477)},
}
