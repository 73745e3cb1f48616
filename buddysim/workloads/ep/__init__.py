"""352.ep: the NAS Parallel Benchmarks' EP as a GPU program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from buddysim.workloads.device import Device
from buddysim.workloads.solver import Array, SolutionCheck, Solver

ORDER = 20
SUMMARY = "NAS EP: pairs of Gaussian deviates, counted in annuli"
PAPER = "352.ep"
WHY = (
    "The numbers of a pass are random and don't compress. The paper's 3 must be that of arrays that are allocated "
    "and hardly used: passes fill them with random numbers otherwise."
)

_ANNULI: Final = 10
_SEED: Final = 271828183
_GROUP: Final = 64
_TOLERANCE: Final = 1e-8  # EPSILON of ep.f
# Sums of both deviates by the logarithm of the number of pairs: classes S, W, A, B, C (ep.f of NPB 3.4).
_SUMS: Final = {
    24: (-3.247834652034740e3, -6.958407078382297e3),
    25: (-2.863319731645753e3, -6.320053679109499e3),
    28: (-4.295875165629892e3, -1.580732573678431e4),
    30: (4.033815542441498e4, -2.660669192809235e4),
    32: (4.764367927995374e4, -8.084072988043731e4),
}


@dataclass(frozen=True)
class EpProblem:
    """A problem: 2^`log2_pairs` pairs in batches of 2^`log2_batch`, with `batches` at once on the device."""

    log2_pairs: int
    log2_batch: int
    batches: int


class EmbarrassinglyParallel(Solver):
    """NAS EP: a step is a pass with one batch for each work-item. Arrays hold the numbers of one pass."""

    problem: EpProblem
    sources = (Path(__file__).parent / "ep.cl",)
    setup_launches = 0
    step_launches = 3

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        batches = self.problem.batches
        return {
            "x1": Array(batches << self.problem.log2_batch),
            "x2": Array(batches << self.problem.log2_batch),
            "qq": Array(_ANNULI * batches),
            "sx": Array(batches),
            "sy": Array(batches),
            "totals": Array(_ANNULI + 2),
        }

    @property
    def constants(self) -> Mapping[str, int | float]:
        return {"PAIRS": 1 << self.problem.log2_batch, "BATCHES": self.problem.batches, "SEED": _SEED}

    @property
    def _all_batches(self) -> int:
        return 1 << (self.problem.log2_pairs - self.problem.log2_batch)

    @property
    def steps(self) -> int:
        return -(-self._all_batches // self.problem.batches)

    @property
    def traced_operations(self) -> int:
        # Per pair two stores, two loads, and a load and a store of a count for those accepted by any lane.
        return self.problem.batches // 32 * (6 << self.problem.log2_batch)

    @property
    def native_seconds(self) -> float:
        return 6e-8 * (1 << self.problem.log2_pairs)

    def set_up(self, device: Device) -> None:
        pass

    def step(self, device: Device, number: int) -> None:
        batches = self.problem.batches
        valid = min(batches, self._all_batches - number * batches)
        device.launch("draw", batches, _GROUP, "x1", "x2", number)
        device.launch("tally", batches, _GROUP, "x1", "x2", "qq", "sx", "sy", valid)
        device.launch("gather", 256, 256, "qq", "sx", "sy", "totals")

    def verify(self, device: Device) -> list[SolutionCheck]:
        *counts, sum_x, sum_y = device.read("totals").tolist()
        right_x, right_y = _SUMS[self.problem.log2_pairs]
        source = "NAS, ep.f"
        # A fraction of pi / 4 of the pairs is within the unit circle; five standard deviations are tolerated.
        pairs = 1 << self.problem.log2_pairs
        quarter = 0.7853981633974483
        deviation = 5 * ((1 - quarter) / (quarter * pairs)) ** 0.5
        return [
            SolutionCheck("sum of X", sum_x, right_x, _TOLERANCE, source),
            SolutionCheck("sum of Y", sum_y, right_y, _TOLERANCE, source),
            SolutionCheck("fraction of pairs accepted", sum(counts) / pairs, quarter, deviation, "pi / 4"),
        ]


SOLVER = EmbarrassinglyParallel
PROBLEMS = {
    "small": {"profile": EpProblem(24, 8, 1024), "replay": EpProblem(24, 8, 768)},
    "medium": {"profile": EpProblem(28, 10, 8192), "replay": EpProblem(28, 10, 6144)},
    "paper": {"profile": EpProblem(32, 16, 2560), "replay": EpProblem(32, 16, 2304)},
}
