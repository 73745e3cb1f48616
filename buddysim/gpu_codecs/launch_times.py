"""How long a codec's kernels take: between and beyond the sizes, sparsities and grids that were simulated.

Every launch was simulated with a tensor of one size at several sparsities; times between these lie on straight lines,
and so they do between two grids, over the logarithm. Larger tensors were simulated at some grids: how much longer they
take is carried over to the other grids and sparsities of the layout, on straight lines over size, and beyond the
largest on the line through the two largest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property

from buddysim.base.errors import BuddysimError
from buddysim.gpu_codecs.interpolation import interpolate
from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.samples import CodecSample
from buddysim.gpu_codecs.synthetic_tensor import check_sparsity

STAGES = ("encode_ps", "sums_ps", "decode_ps")


@dataclass(frozen=True, eq=False)
class LaunchTimes:
    """The times of a codec whose work-groups share out every tensor."""

    samples: tuple[CodecSample, ...]

    def at(self, byte_count: int, sparsity: float, launch: LaunchShape) -> CodecSample:
        """The times of a tensor, with their origin.

        Raises
        ------
        BuddysimError
            a launch out of range, a sparsity outside 0 to 1
        """
        launch.check()
        check_sparsity(sparsity)
        known = self._by_key.get((byte_count, sparsity, launch.grid, launch.block))
        if known is not None:
            return known
        encode, sums, decode = (round(self._stage(stage, byte_count, sparsity, launch)) for stage in STAGES)
        first = self.samples[0]
        return replace(
            first, grid=launch.grid, block=launch.block, byte_count=byte_count, sparsity=sparsity, payload_bytes=0,
            encode_ps=encode, sums_ps=sums, decode_ps=decode, origin=self._origin(byte_count, sparsity),
        )  # fmt: skip

    def best_launch(self, byte_count: int, sparsity: float) -> LaunchShape:
        """The launch that takes least in both directions, of those that were simulated."""
        return _best_launch(self, byte_count, sparsity)

    @property
    def launches(self) -> list[LaunchShape]:
        """Every launch that was simulated."""
        return sorted({LaunchShape(s.grid, s.block) for s in self._base}, key=lambda one: (one.block, one.grid))

    @property
    def sizes(self) -> list[int]:
        """Sizes at which several grids were simulated, ascending."""
        return sorted({sample.byte_count for sample in self._larger} | {self._base[0].byte_count})

    @cached_property
    def _by_key(self) -> dict[tuple[int, float, int, int], CodecSample]:
        return {(s.byte_count, s.sparsity, s.grid, s.block): s for s in self.samples}

    @cached_property
    def _base(self) -> tuple[CodecSample, ...]:
        """The samples of the size that most launches were simulated with."""
        sizes = [sample.byte_count for sample in self.samples]
        size = max(sorted(set(sizes)), key=sizes.count)
        return tuple(sample for sample in self.samples if sample.byte_count == size)

    @cached_property
    def _larger(self) -> tuple[CodecSample, ...]:
        """The samples of larger tensors whose sparsity every launch was simulated with; the others are held out."""
        least, sparsities = self._base[0].byte_count, {sample.sparsity for sample in self._base}
        return tuple(s for s in self.samples if s.byte_count > least and s.sparsity in sparsities)

    @cached_property
    def _lines(self) -> dict[tuple[str, float, int], list[tuple[float, float]]]:
        """Times over the logarithm of the grid, by stage, sparsity and block."""
        found: dict[tuple[str, float, int], list[tuple[float, float]]] = {}
        for sample in sorted(self._base):
            for stage in STAGES:
                point = (math.log(sample.grid), float(getattr(sample, stage)))
                found.setdefault((stage, sample.sparsity, sample.block), []).append(point)
        return {key: sorted(points) for key, points in found.items()}

    def _origin(self, byte_count: int, sparsity: float) -> str:
        sparsities = [sample.sparsity for sample in self._base]
        inside = min(sparsities) <= sparsity <= max(sparsities) and self.sizes[0] <= byte_count <= self.sizes[-1]
        return "interpolated" if inside else "extrapolated"

    def _stage(self, stage: str, byte_count: int, sparsity: float, launch: LaunchShape) -> float:
        at = math.log(launch.grid)
        by_sparsity = sorted(
            (known, interpolate(points, at, beyond=False))
            for (name, known, block), points in self._lines.items()
            if name == stage and block == launch.block
        )
        if not by_sparsity:
            raise BuddysimError(f"block {launch.block}: its times weren't simulated")
        return max(0.0, interpolate(by_sparsity, sparsity)) * self._growth(stage, byte_count, launch)

    def _growth(self, stage: str, byte_count: int, launch: LaunchShape) -> float:
        """Time of a tensor over that of the same one of the size that every launch was simulated with."""
        lines = self._growth_lines[stage]
        if not lines:
            return byte_count / self._base[0].byte_count
        by_grid = [(at, max(0.0, interpolate(points, float(byte_count)))) for at, points in lines]
        return interpolate(by_grid, math.log(launch.grid), beyond=False)

    @cached_property
    def _growth_lines(self) -> dict[str, list[tuple[float, list[tuple[float, float]]]]]:
        """By stage and the logarithm of the grid: time over the first size's, by size."""
        first = {(s.grid, s.block, s.sparsity): s for s in self._base}
        found: dict[str, list[tuple[float, list[tuple[float, float]]]]] = {stage: [] for stage in STAGES}
        for grid in sorted({sample.grid for sample in self._larger}):
            larger = [sample for sample in self._larger if sample.grid == grid]
            like = first.get((grid, larger[0].block, larger[0].sparsity))
            for stage in STAGES:
                least = getattr(like, stage, 0)
                if least:
                    points = [
                        (float(s.byte_count), getattr(s, stage) / least) for s in (like, *larger) if s is not None
                    ]
                    found[stage].append((math.log(grid), sorted(points)))
        return found


@cache
def _best_launch(times: LaunchTimes, byte_count: int, sparsity: float) -> LaunchShape:
    return min(times.launches, key=lambda launch: times.at(byte_count, sparsity, launch).total_ps)
