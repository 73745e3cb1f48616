"""356.sp: the NAS Parallel Benchmarks' SP as a GPU program, in the layout of the Fortran program."""

from buddysim.workloads.nas_flow import NasProblem
from buddysim.workloads.sp.solver import MEDIUM_REPLAY, ScalarPentadiagonal

ORDER = 50
SUMMARY = "NAS SP: a flow by scalar pentadiagonal systems; components of a cell side by side, as in Fortran"
PAPER = "356.sp"
WHY = (
    "Fields of full precision; of the coefficients that are kept, only the outermost of each system is constant. "
    "The paper's 1.9 must be that of further arrays of the port, or of memory that isn't used."
)
REFERENCE = {"profile": "npb_sp_a"}

SOLVER = ScalarPentadiagonal
PROBLEMS = {
    "small": {"profile": NasProblem(12, 12, 12, 100, 0.015, True), "replay": NasProblem(36, 36, 36, 400, 0.0015, True)},
    "medium": {
        "profile": NasProblem(64, 64, 64, 400, 0.0015, True),
        "replay": NasProblem(60, 64, 62, 200, 0.0015, True, MEDIUM_REPLAY),
    },
    "paper": {
        "profile": NasProblem(162, 162, 162, 400, 0.00067, True),
        "replay": NasProblem(102, 102, 102, 400, 0.001, True),
    },
    "reference": {"profile": NasProblem(64, 64, 64, 400, 0.0015, True)},
}
