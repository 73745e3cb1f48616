"""Codec times as the CSWAP paper's Fig. 5 has them: its three points, for grids between and beyond.

500 MB with 50 % zeros took 146, 44 and 150 ms, both ways, at grids 10, 197 and 1024 with work-groups of 64
(Sec. IV-D). ``a / grid + b + c x grid`` goes through them: work shared out among more groups, and what more groups
cost. The time is taken as proportional to the size, independent of the sparsity and of the work-group's size ("a
similar trend"), and half of it is spent each way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.samples import CodecSample

#: Milliseconds by grid.
POINTS = {10: 146.0, 197: 44.0, 1024: 150.0}
BYTES = 500 * 2**20
#: What the paper's Bayesian optimisation found for it (Sec. V-D).
LAUNCH = LaunchShape(199, 64)

_PS_PER_MS = 10**9


@cache
def coefficients() -> tuple[float, float, float]:
    """a, b and c, in milliseconds."""
    matrix = [[1 / grid, 1.0, float(grid)] for grid in POINTS]
    a, b, c = np.linalg.solve(np.array(matrix), np.array(list(POINTS.values())))
    return float(a), float(b), float(c)


@dataclass(frozen=True)
class PaperTimes:
    """The three points as a codec's times; any codec's, since the paper has them of ZVC alone."""

    def sample_at(self, byte_count: int, sparsity: float, launch: LaunchShape) -> CodecSample:
        """The times of a tensor."""
        launch.check()
        a, b, c = coefficients()
        ms = a / launch.grid + b + c * launch.grid
        half = round(ms * _PS_PER_MS * byte_count / BYTES / 2)
        known = launch.grid in POINTS and byte_count == BYTES
        origin = "paper" if known else "fitted to the paper's three points"
        return CodecSample(
            "paper", "zvc", "paper", launch.grid, launch.block, byte_count, sparsity, 0, half, 0, half, origin
        )

    def best_launch(self, byte_count: int, sparsity: float) -> LaunchShape:
        """The paper's."""
        return LAUNCH
