"""370.bt: the NAS Parallel Benchmarks' BT as a GPU program."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Final

from buddysim.workloads.device import Device
from buddysim.workloads.nas_flow import GROUP, LINE_GROUP, RHS_LAUNCHES, SCALARS, SOURCE, NasFlow, NasProblem
from buddysim.workloads.solver import Array

ORDER = 70
SUMMARY = "NAS BT: a flow by block tridiagonal systems, with the Jacobians and blocks of all cells"
PAPER = "370.bt"
WHY = (
    "Fields of full precision (1.05 alone); Jacobians and blocks, which ports keep for all cells, have elements "
    "that are always 0 or 1. The paper's 1.35 would be that of a port that keeps fewer of them."
)
REFERENCE = {"profile": "npb_bt_a"}

# RMS norms of the residual and of the error by grid points along each direction, steps and their length: classes S, W,
# A, B and C of verify.f (NPB 3.4).
_NORMS: Final = {
    (12, 60, 0.01): (
        (
            1.7034283709541311e-1,
            1.2975252070034097e-2,
            3.2527926989486055e-2,
            2.6436421275166801e-2,
            1.9211784131744430e-1,
        ),
        (
            4.9976913345811579e-4,
            4.5195666782961927e-5,
            7.3973765172921357e-5,
            7.3821238632439731e-5,
            8.9269630987491446e-4,
        ),
    ),
    (24, 200, 0.0008): (
        (112.5590409344, 11.80007595731, 27.10329767846, 24.69174937669, 263.8427874317),
        (4.419655736008, 0.4638531260002, 1.011551749967, 0.9235878729944, 10.18045837718),
    ),
    (64, 200, 0.0008): (
        (108.06346714637264, 11.319730901220813, 25.974354511582465, 23.665622544678910, 252.78963211748344),
        (4.2348416040525025, 0.44390282496995698, 0.96692480136345650, 0.88302063039765474, 9.7379901770829278),
    ),
    (102, 200, 0.0003): (
        (1423.3597229287254, 99.330522590150238, 356.46025644535285, 324.85447959084092, 3270.7541254659363),
        (52.969847140936856, 4.4632896115670668, 13.122573342210174, 12.006925323559144, 124.59576151035986),
    ),
}
# The same norms after 100 steps of 0.0008, by NPB-CPP 4.1 (BT, class A with its input file), of 32 x 56 x 56 points
# # and of 32 x 52 x 60.
_MEDIUM_PROFILE: Final = (
    (848.04196456744, 67.199661810192, 212.39690202408, 194.34976998528, 1994.7449574865),
    (32.510130519331, 3.0089838441561, 7.9864364152478, 7.2999542806660, 76.671806653885),
)
_MEDIUM_REPLAY: Final = (
    (848.11494007268, 67.206346275226, 212.42365231238, 194.36656417530, 1994.9246517622),
    (32.512948494795, 3.0092719139683, 7.9874832214198, 7.3005593028953, 76.678648681858),
)


class BlockTridiagonal(NasFlow):
    """NAS BT: one block-tridiagonal system for each grid line, in each direction."""

    sources = (SOURCE, Path(__file__).parent / "bt.cl")
    step_launches = RHS_LAUNCHES + 2 + 3 * 3
    cell_operations = 1400
    cell_seconds = 3e-6
    published = _NORMS

    @cached_property
    def arrays(self) -> dict[str, Array]:
        cells = self.problem.cells
        return super().arrays | {"fjac": Array(25 * cells), "njac": Array(25 * cells), "lhs": Array(75 * cells)}

    def step(self, device: Device, number: int) -> None:
        nx, ny, nz = self.problem.nx, self.problem.ny, self.problem.nz
        grid = {"x": (ny, nx, nz), "y": (nx, ny, nz), "z": (nx, ny, nz)}
        lines = {"x": (ny - 2, nz - 2), "y": (nx - 2, nz - 2), "z": (nx - 2, ny - 2)}
        device.launch("derive", (nx, ny, nz), GROUP, "u", *SCALARS)
        self.launch_rhs(device)
        for direction in "xyz":
            fields = ("u", "qs", "rho_i", "square")
            device.launch(f"{direction}_jacobians", grid[direction], GROUP, *fields, "fjac", "njac")
            device.launch(f"{direction}_blocks", grid[direction], GROUP, "fjac", "njac", "lhs")
            device.launch(f"{direction}_solve", lines[direction], LINE_GROUP, "rhs", "lhs")
        device.launch("add", (nx, ny, nz), GROUP, "u", "rhs")


SOLVER = BlockTridiagonal
PROBLEMS = {
    "small": {"profile": NasProblem(12, 12, 12, 60, 0.01), "replay": NasProblem(24, 24, 24, 200, 0.0008)},
    "medium": {
        "profile": NasProblem(32, 56, 56, 100, 0.0008, expected=_MEDIUM_PROFILE),
        "replay": NasProblem(32, 52, 60, 100, 0.0008, expected=_MEDIUM_REPLAY),
    },
    "paper": {"profile": NasProblem(102, 102, 102, 200, 0.0003), "replay": NasProblem(64, 64, 64, 200, 0.0008)},
    "reference": {"profile": NasProblem(64, 64, 64, 200, 0.0008, together=True)},
}
