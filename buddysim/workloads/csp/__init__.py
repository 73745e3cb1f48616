"""357.csp: SP once more, in the layout of the C program."""

from buddysim.workloads.nas_flow import NasProblem
from buddysim.workloads.sp.solver import MEDIUM_REPLAY, ScalarPentadiagonal

ORDER = 60
SUMMARY = "NAS SP in the layout of C ports: an array for each component, one set of coefficients for all directions"
PAPER = "357.csp"
WHY = "As sp, but with components apart constant coefficients fill whole entries: as in the paper."


class SeparateComponents(ScalarPentadiagonal):
    """SP with the same coefficient arrays for all directions."""

    systems_per_direction = False


SOLVER = SeparateComponents
PROBLEMS = {
    "small": {"profile": NasProblem(12, 12, 12, 100, 0.015), "replay": NasProblem(36, 36, 36, 400, 0.0015)},
    "medium": {
        "profile": NasProblem(64, 64, 64, 400, 0.0015),
        "replay": NasProblem(60, 64, 62, 200, 0.0015, False, MEDIUM_REPLAY),
    },
    "paper": {"profile": NasProblem(162, 162, 162, 400, 0.00067), "replay": NasProblem(102, 102, 102, 400, 0.001)},
}
