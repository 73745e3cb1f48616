"""Codec times of the CSWAP paper's Fig. 5: its three points, and a curve between and beyond their grids.

500 MB with 50 % zeros took 146, 44 and 150 ms in both directions together, at grids 10, 197 and 1024 with work-groups
of 64 (reported, Sec. IV-D). The curve ``a / grid + b + c x grid`` passes through these points: ``a`` is distributed
work, ``c`` the cost of each work-group. Assumed: time is proportional to the size and independent of sparsity and
work-group size ("a similar trend"), and each direction takes half of it.
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
#: Launch that the paper's Bayesian optimisation selected (Sec. V-D).
LAUNCH = LaunchShape(199, 64)

_PS_PER_MS = 10**9


@cache
def coefficients() -> tuple[float, float, float]:
    """Return a, b and c, in milliseconds."""
    matrix = [[1 / grid, 1.0, float(grid)] for grid in POINTS]
    a, b, c = np.linalg.solve(np.array(matrix), np.array(list(POINTS.values())))
    return float(a), float(b), float(c)


@dataclass(frozen=True)
class PaperTimes:
    """Codec times from the three points; they are ZVC's, and stand for every codec."""

    def sample_at(self, byte_count: int, sparsity: float, launch: LaunchShape) -> CodecSample:
        """Return the times of a tensor."""
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
        """Return the paper's launch."""
        return LAUNCH
