"""Times of a codec whose work-groups each process one block of the tensor after the other (LZ4).

Blocks are independent; each work-group processes one at a time. A simulated round is one block for each work-group. A
tensor takes as many rounds as a work-group has blocks. More work-groups than the largest simulated number are assumed
to be no faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from buddysim.gpu_codecs.interpolation import interpolate
from buddysim.gpu_codecs.launch_surface import LaunchSurface
from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.samples import CodecSample
from buddysim.gpu_codecs.synthetic_tensor import check_sparsity


@dataclass(frozen=True, eq=False)
class BlockTimes:
    """Times of one codec on one machine.

    Parameters
    ----------
    samples : simulated samples; those with one block for each work-group are rounds
    block_bytes : bytes of a block
    """

    samples: tuple[CodecSample, ...]
    block_bytes: int

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
        for sample in self.samples:
            if (sample.byte_count, sample.sparsity, sample.grid, sample.block) == (
                byte_count, sparsity, launch.grid, launch.block
            ):  # fmt: skip
                return sample
        blocks = self._blocks(byte_count)
        busy = min(launch.grid, blocks, self._max_grid)
        rounds = -(-blocks // busy)
        encode, decode = (rounds * self._round(stage, busy, launch.block, sparsity) for stage in self._rounds)
        sums = max(0.0, interpolate(self._sums, float(blocks)))
        return replace(
            self.samples[0], grid=launch.grid, block=launch.block, byte_count=byte_count, sparsity=sparsity,
            payload_bytes=0, encode_ps=round(encode), sums_ps=round(sums), decode_ps=round(decode),
            origin=self._origin(blocks, sparsity, launch),
        )  # fmt: skip

    def best_launch(self, byte_count: int, sparsity: float) -> LaunchShape:
        """Return the simulated launch with the least time of both directions."""
        launches = sorted(
            {LaunchShape(s.grid, s.block) for s in self._every_round}, key=lambda one: (one.block, one.grid)
        )
        return min(launches, key=lambda launch: self.sample_at(byte_count, sparsity, launch).total_ps)

    def _blocks(self, byte_count: int) -> int:
        return max(1, -(-byte_count // self.block_bytes))

    @cached_property
    def _every_round(self) -> Sequence[CodecSample]:
        return [sample for sample in self.samples if self._blocks(sample.byte_count) == sample.grid]

    @cached_property
    def _rounds(self) -> dict[str, LaunchSurface]:
        return {
            stage: LaunchSurface({(s.grid, s.block, s.sparsity): getattr(s, stage) for s in self._every_round})
            for stage in ("encode_ps", "decode_ps")
        }

    @cached_property
    def _sums(self) -> list[tuple[float, float]]:
        return sorted({self._blocks(s.byte_count): float(s.sums_ps) for s in self.samples}.items())

    @property
    def _max_grid(self) -> int:
        return max(sample.grid for sample in self._every_round)

    def _round(self, stage: str, busy: int, block: int, sparsity: float) -> float:
        surface = self._rounds[stage]
        return max(
            0.0, interpolate([(known, surface.time_at(busy, block, known)) for known in surface.sparsities], sparsity)
        )

    def _origin(self, blocks: int, sparsity: float, launch: LaunchShape) -> str:
        sparsities = self._rounds["encode_ps"].sparsities
        largest = max(self._blocks(sample.byte_count) for sample in self.samples)
        inside = sparsities[0] <= sparsity <= sparsities[-1] and blocks <= largest and launch.grid <= self._max_grid
        return "interpolated" if inside else "extrapolated"
