"""Strided reads: the 32 lanes of a warp read a word each, at a fixed distance."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.compress import SECTOR_BYTES
from buddysim.machine import fields
from buddysim.synthetic.parts.kernels import line_records, load, write_kernel
from buddysim.synthetic.workload import Footprint, OpsPerWarp, UseDistance, WarpsPerBlock, Workload
from buddysim.trace import TraceWriter
from buddysim.trace.coalesce import bank_words_of
from buddysim.trace.format import LINE_BYTES

LANES = 32
LANE_BYTES = 4


class StrideWorkload(Workload):
    """loads whose lanes are a stride apart: from one line per instruction (4 B) to 32 lines (128 B and more)"""

    name: ClassVar[str] = "stride"

    stride: Annotated[int, fields.size("4 B", "2 MiB")] = Field(
        default=256, description="distance of neighbouring lanes: 4 to 128 B (a power of two) or a multiple of 128 B"
    )
    footprint: Footprint = Field(default=64 * 2**20, description="bytes of the array, which is read once")
    warps_per_block: WarpsPerBlock = Field(default=8, description="warps per thread block")
    loads_per_warp: OpsPerWarp = Field(default=8, description="loads per warp")
    use_distance: UseDistance = Field(default=1, description="instructions from a load to its first use; 0: never")

    def check(self) -> None:
        if not (self.stride % LINE_BYTES == 0 or self.stride in (4, 8, 16, 32, 64)):
            raise ValueError(f"stride: {self.stride} B: expected 4, 8, 16, 32, 64 B or a multiple of {LINE_BYTES} B")

    def write(self, writer: TraceWriter) -> None:
        base = self.allocate(writer, {"array": self.footprint})["array"]
        offsets = np.arange(LANES, dtype=np.uint64) * np.uint64(self.stride)
        entry_of_lane = offsets // np.uint64(LINE_BYTES)
        entries = np.unique(entry_of_lane)
        sectors = np.zeros(len(entries), dtype=np.uint64)
        within = offsets % np.uint64(LINE_BYTES) // np.uint64(SECTOR_BYTES)
        np.bitwise_or.at(sectors, np.searchsorted(entries, entry_of_lane), np.uint64(1) << within)
        span = -(-LANES * self.stride // LINE_BYTES)
        loads = max(1, -(-self.footprint // LINE_BYTES) // span)
        last = -(-self.footprint // LINE_BYTES) - 1
        tile = self.warps_per_block * self.loads_per_warp
        warp = np.arange(self.warps_per_block, dtype=np.uint64).reshape(1, -1, 1, 1)
        step = np.arange(self.loads_per_warp, dtype=np.uint64).reshape(1, 1, -1, 1)

        def lines_of(block: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
            number = block * np.uint64(tile) + step * np.uint64(self.warps_per_block) + warp
            entry = np.minimum(number * np.uint64(span) + entries, np.uint64(last))
            return line_records(base, entry, np.broadcast_to(sectors, entry.shape))

        write_kernel(
            writer,
            "stride_read",
            blocks=-(-loads // tile),
            warps_per_block=self.warps_per_block,
            operations=[
                load(
                    lines=len(entries),
                    bytes_per_lane=LANE_BYTES,
                    use_distance=self.use_distance,
                    bank_words=bank_words_of(offsets, LANE_BYTES),
                )
            ],
            repeats=self.loads_per_warp,
            lines_of=lines_of,
        )
