"""Times of a codec's kernels, interpolated and extrapolated over sizes, sparsities and grids.

Every launch was simulated with a tensor of one size at several sparsities. Times are interpolated linearly between
sparsities, and between grids over the logarithm. Larger tensors were simulated at some grids: the ratio of their times
applies to the other grids and sparsities of the layout, interpolated linearly over size, and extrapolated beyond the
largest size from the two largest.
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
    """Times of a codec whose work-groups distribute every tensor among them."""

    samples: tuple[CodecSample, ...]

    def sample_at(self, byte_count: int, sparsity: float, launch: LaunchShape) -> CodecSample:
        """Return the times of a tensor, with their origin.

        Parameters
        ----------
        byte_count : size of the tensor
        sparsity : fraction of zeros, 0 to 1

        Raises
        ------
        BuddysimError
            if the launch or the sparsity is out of range
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
        """Return the simulated launch with the least time of both directions."""
        return _best_launch(self, byte_count, sparsity)

    @property
    def launches(self) -> list[LaunchShape]:
        """All simulated launches."""
        return sorted({LaunchShape(s.grid, s.block) for s in self._base}, key=lambda one: (one.block, one.grid))

    @cached_property
    def sizes(self) -> list[int]:
        """Sizes at which several grids were simulated, ascending."""
        return sorted({sample.byte_count for sample in self._larger} | {self._base[0].byte_count})

    @cached_property
    def _by_key(self) -> dict[tuple[int, float, int, int], CodecSample]:
        return {(s.byte_count, s.sparsity, s.grid, s.block): s for s in self.samples}

    @cached_property
    def _base(self) -> tuple[CodecSample, ...]:
        """Samples of the most frequent size."""
        sizes = [sample.byte_count for sample in self.samples]
        size = max(sorted(set(sizes)), key=sizes.count)
        return tuple(sample for sample in self.samples if sample.byte_count == size)

    @cached_property
    def _larger(self) -> tuple[CodecSample, ...]:
        """Samples of larger tensors at sparsities of the base size; the others are held out."""
        base_size, sparsities = self._base[0].byte_count, {sample.sparsity for sample in self._base}
        return tuple(s for s in self.samples if s.byte_count > base_size and s.sparsity in sparsities)

    @cached_property
    def _lines(self) -> dict[tuple[str, int], list[tuple[float, list[tuple[float, float]]]]]:
        """Times over the logarithm of the grid for each sparsity, ascending, by stage and block."""
        lines: dict[tuple[str, float, int], list[tuple[float, float]]] = {}
        for sample in sorted(self._base):
            for stage in STAGES:
                point = (math.log(sample.grid), float(getattr(sample, stage)))
                lines.setdefault((stage, sample.sparsity, sample.block), []).append(point)
        by_block: dict[tuple[str, int], list[tuple[float, list[tuple[float, float]]]]] = {}
        for (stage, sparsity, block), points in sorted(lines.items()):
            by_block.setdefault((stage, block), []).append((sparsity, sorted(points)))
        return by_block

    @cached_property
    def _sparsities(self) -> tuple[float, float]:
        """The least and the largest sparsity of the base size."""
        sparsities = [sample.sparsity for sample in self._base]
        return min(sparsities), max(sparsities)

    def _origin(self, byte_count: int, sparsity: float) -> str:
        least, largest = self._sparsities
        inside = least <= sparsity <= largest and self.sizes[0] <= byte_count <= self.sizes[-1]
        return "interpolated" if inside else "extrapolated"

    def _stage(self, stage: str, byte_count: int, sparsity: float, launch: LaunchShape) -> float:
        at = math.log(launch.grid)
        lines = self._lines.get((stage, launch.block))
        if lines is None:
            raise BuddysimError(f"block {launch.block}: not simulated: expected one of {self._blocks_text}")
        by_sparsity = [(known, interpolate(points, at, beyond=False)) for known, points in lines]
        return max(0.0, interpolate(by_sparsity, sparsity)) * self._growth(stage, byte_count, launch)

    @property
    def _blocks_text(self) -> str:
        return ", ".join(map(str, sorted({block for _, block in self._lines})))

    def _growth(self, stage: str, byte_count: int, launch: LaunchShape) -> float:
        """Return the time of a tensor over the time of a tensor of the base size."""
        if not self._growth_lines[stage]:
            return byte_count / self._base[0].byte_count
        by_grid = _growth_by_grid(self, stage, byte_count)
        return interpolate(by_grid, math.log(launch.grid), beyond=False)

    @cached_property
    def _growth_lines(self) -> dict[str, list[tuple[float, list[tuple[float, float]]]]]:
        """Return the time over that of the base size, by size, for each stage and logarithm of the grid."""
        first = {(s.grid, s.block, s.sparsity): s for s in self._base}
        lines: dict[str, list[tuple[float, list[tuple[float, float]]]]] = {stage: [] for stage in STAGES}
        for grid in sorted({sample.grid for sample in self._larger}):
            larger = [sample for sample in self._larger if sample.grid == grid]
            like = first.get((grid, larger[0].block, larger[0].sparsity))
            for stage in STAGES:
                base_ps = getattr(like, stage, 0)
                if base_ps:
                    points = [
                        (float(s.byte_count), getattr(s, stage) / base_ps) for s in (like, *larger) if s is not None
                    ]
                    lines[stage].append((math.log(grid), sorted(points)))
        return lines


@cache
def _growth_by_grid(times: LaunchTimes, stage: str, byte_count: int) -> list[tuple[float, float]]:
    """Return the time of a tensor over that of the base size, by the logarithm of the grid."""
    lines = times._growth_lines[stage]
    return [(at, max(0.0, interpolate(points, float(byte_count)))) for at, points in lines]


@cache
def _best_launch(times: LaunchTimes, byte_count: int, sparsity: float) -> LaunchShape:
    return min(times.launches, key=lambda launch: times.sample_at(byte_count, sparsity, launch).total_ps)
