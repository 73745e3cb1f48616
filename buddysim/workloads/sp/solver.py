"""NAS SP in the layouts of the Fortran and the C program."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Final

from buddysim.workloads.device import Device
from buddysim.workloads.nas_flow import GROUP, LINE_GROUP, RHS_LAUNCHES, SCALARS, SOURCE, NasFlow
from buddysim.workloads.solver import Array

_AFTER: Final = {
    "x": ("ninvr", ("rhs",)),
    "y": ("pinvr", ("rhs",)),
    "z": ("tzetar", ("u", "rhs", "us", "vs", "ws", "qs", "speed")),
}
_ALONG: Final = {"x": "us", "y": "vs", "z": "ws"}
_SYSTEMS: Final = ("lhs", "lhsp", "lhsm")
# RMS norms of the residual and of the error by grid points along each direction, steps and their length: classes S, W,
# A, B and C of verify.f (NPB 3.4).
_NORMS: Final = {
    (12, 100, 0.015): (
        (
            2.7470315451339479e-2,
            1.0360746705285417e-2,
            1.6235745065095532e-2,
            1.5840557224455615e-2,
            3.4849040609362460e-2,
        ),
        (
            2.7289258557377227e-5,
            1.0364446640837285e-5,
            1.6154798287166471e-5,
            1.5750704994480102e-5,
            3.4177666183390531e-5,
        ),
    ),
    (36, 400, 0.0015): (
        (0.1893253733584e-2, 0.1717075447775e-3, 0.2778153350936e-3, 0.2887475409984e-3, 0.3143611161242e-2),
        (0.7542088599534e-4, 0.6512852253086e-5, 0.1049092285688e-4, 0.1128838671535e-4, 0.1212845639773e-3),
    ),
    (64, 400, 0.0015): (
        (2.4799822399300195, 1.1276337964368832, 1.5028977888770491, 1.4217816211695179, 2.1292113035138280),
        (
            1.0900140297820550e-4,
            3.7343951769282091e-5,
            5.0092785406541633e-5,
            4.7671093939528255e-5,
            1.3621613399213001e-4,
        ),
    ),
    (102, 400, 0.001): (
        (69.03293579998, 30.95134488084, 41.03336647017, 38.64769009604, 56.43482272596),
        (0.9810006190188e-2, 0.1022827905670e-2, 0.1720597911692e-2, 0.1694479428231e-2, 0.1847456263981e-1),
    ),
    (162, 400, 0.00067): (
        (588.1691581829, 245.4417603569, 329.3829191851, 308.1924971891, 459.7223799176),
        (0.2598120500183, 0.2590888922315e-1, 0.5132886416320e-1, 0.4806073419454e-1, 0.5483377491301),
    ),
}

#: The same norms of 60 x 64 x 62 points after 200 steps of 0.0015, by NPB-CPP 4.1 (SP, class A with its input file).
MEDIUM_REPLAY: Final = (
    (19.422032458580, 8.5949305598442, 11.469457097110, 10.827152776840, 17.274780088581),
    (0.12334284334515, 0.011997293064196, 0.024313873434027, 0.022934530582732, 0.24911067908586),
)


class ScalarPentadiagonal(NasFlow):
    """NAS SP: five scalar systems for each grid line, in each direction.

    Attributes
    ----------
    systems_per_direction : whether each direction has coefficients of its own
    """

    sources = (SOURCE, Path(__file__).parent / "sp.cl")
    step_launches = RHS_LAUNCHES + 3 + 3 * 3
    cell_operations = 470
    cell_seconds = 6e-7
    published = _NORMS
    systems_per_direction = True

    @cached_property
    def arrays(self) -> dict[str, Array]:
        cells = self.problem.cells
        systems = {name: Array(5 * cells) for direction in "xyz" for name in self._systems(direction)}
        return super().arrays | {"speed": Array(cells)} | systems

    def _systems(self, direction: str) -> list[str]:
        return [f"{name}{direction}" if self.systems_per_direction else name for name in _SYSTEMS]

    def step(self, device: Device, number: int) -> None:
        problem = self.problem
        grid = problem.nx, problem.ny, problem.nz
        lines = {"x": (problem.ny, problem.nz), "y": (problem.nx, problem.nz), "z": (problem.nx, problem.ny)}
        device.launch("derive", grid, GROUP, "u", *SCALARS, "speed")
        self.launch_rhs(device)
        device.launch("txinvr", grid, GROUP, "rhs", "us", "vs", "ws", "qs", "rho_i", "speed")
        for direction in "xyz":
            systems = self._systems(direction)
            device.launch(f"{direction}_lines", grid, GROUP, *systems, _ALONG[direction], "rho_i", "speed")
            inner = lines[direction][0] - 2, lines[direction][1] - 2
            device.launch(f"{direction}_solve", inner, LINE_GROUP, "rhs", *systems)
            kernel, names = _AFTER[direction]
            device.launch(kernel, grid, GROUP, *names)
        device.launch("add", grid, GROUP, "u", "rhs")
