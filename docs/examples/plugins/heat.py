"""A workload of your own: heat spreads over a plate, by explicit steps; verified by a wave's exact decay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buddysim.workloads import Array, SolutionCheck, Solver

SUMMARY = "heat spreads over a square plate whose edges are kept at 0"
FRACTION = 0.2  # of the difference to a neighbour that flows in a step

KERNEL = """
kernel void spread(global const double *now, global double *next, int n) {
    int i = get_global_id(0) + 1, j = get_global_id(1) + 1, c = j * (n + 2) + i;
    if (i > n || j > n) return;
    next[c] = now[c] + FRACTION * (now[c - 1] + now[c + 1] + now[c - n - 2] + now[c + n + 2] - 4.0 * now[c]);
}
"""


@dataclass(frozen=True)
class Problem:
    """Points along an edge, steps, half waves along it."""

    n: int
    steps: int
    waves: int


class Heat(Solver):
    """A step is one launch."""

    problem: Problem
    sources = (KERNEL,)
    setup_launches, step_launches = 0, 1

    @property
    def arrays(self) -> dict[str, Array]:
        return dict.fromkeys(("even", "odd"), Array((self.problem.n + 2) ** 2))

    @property
    def constants(self) -> dict[str, float]:
        return {"FRACTION": FRACTION}

    @property
    def steps(self) -> int:
        return self.problem.steps

    @property
    def traced_operations(self) -> int:
        return 6 * self.problem.n * -(-self.problem.n // 32)

    @property
    def native_seconds(self) -> float:
        return 1e-8 * self.problem.n**2 * self.steps

    def set_up(self, device) -> None:
        device.write("even", self._wave())

    def step(self, device, number: int) -> None:
        now, after = ("even", "odd") if number % 2 == 0 else ("odd", "even")
        device.launch("spread", (self.problem.n, self.problem.n), (32, 4), now, after, self.problem.n)

    def verify(self, device) -> list[SolutionCheck]:
        heat = device.read("odd" if self.steps % 2 else "even").reshape(2 * (self.problem.n + 2,))
        angle = np.pi * self.problem.waves / (self.problem.n + 1)
        right = self._wave() * (1 - 4 * FRACTION * (1 - np.cos(angle))) ** self.steps
        error = float(np.abs(heat - right).max())
        return [SolutionCheck("largest error", error, 0.0, 1e-12, "the scheme's decay of a wave")]

    def _wave(self) -> np.ndarray:
        line = np.sin(np.pi * self.problem.waves * np.arange(self.problem.n + 2) / (self.problem.n + 1))
        return np.outer(line, line)


SOLVER = Heat
PROBLEMS = {"small": {"profile": Problem(256, 20, 1), "replay": Problem(224, 20, 3)}}
