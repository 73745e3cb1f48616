"""Interpolated times over launches and sparsities.

Most launches were simulated with the reference: one sparsity and one size of work-groups. Between two grids, times are
interpolated linearly in logarithms, since the time of distributed work is proportional to 1 / grid. Ratios of times
with other work-groups or sparsities to the reference are known at some grids. They are interpolated linearly over the
grid's logarithm. If no launch had a combination, both ratios are multiplied.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from buddysim.gpu_codecs.interpolation import interpolate

#: Grid, work-items of a work-group, sparsity.
Point = tuple[int, int, float]


class LaunchSurface:
    """Times by grid, size of work-groups and sparsity.

    Parameters
    ----------
    times : simulated times, above 0
    """

    def __init__(self, times: Mapping[Point, float]) -> None:
        counts = Counter((block, sparsity) for _, block, sparsity in times)
        self.block, self.sparsity = max(sorted(counts), key=lambda key: counts[key])
        self.sparsities = sorted({sparsity for _, _, sparsity in times})
        self._times = times
        self._reference = [
            (math.log(grid), math.log(time))
            for (grid, *rest), time in sorted(times.items())
            if rest == [self.block, self.sparsity]
        ]

    def time_at(self, grid: int, block: int, sparsity: float) -> float:
        """Return the time of a launch with one of the sparsities; beyond the simulated grids, the last grid's time."""
        known = self._times.get((grid, block, sparsity))
        return self._at_reference(grid) * self._ratio(grid, block, sparsity) if known is None else known

    def _at_reference(self, grid: int) -> float:
        return math.exp(interpolate(self._reference, math.log(grid), beyond=False))

    def _ratio(self, grid: int, block: int, sparsity: float) -> float:
        if (block, sparsity) == (self.block, self.sparsity):
            return 1.0
        points = [
            (math.log(at), time / self._at_reference(at))
            for (at, *rest), time in sorted(self._times.items())
            if rest == [block, sparsity]
        ]
        if points:
            return interpolate(points, math.log(grid), beyond=False)
        if block == self.block or sparsity == self.sparsity:
            raise KeyError((block, sparsity))
        return self._ratio(grid, block, self.sparsity) * self._ratio(grid, self.block, sparsity)
