"""Fully divergent accesses: every lane of an instruction accesses a random sector of a different line."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.compress import SECTOR_BYTES
from buddysim.machine import fields
from buddysim.synthetic.parts.hashing import below
from buddysim.synthetic.parts.kernels import line_records, load, store, write_kernel
from buddysim.synthetic.workload import Footprint, OpsPerWarp, Seed, UseDistance, WarpsPerBlock, Workload
from buddysim.trace import TraceWriter
from buddysim.trace.format import LINE_BYTES

LANES = 32
SECTORS = 4


class RandomWorkload(Workload):
    """fully divergent loads or stores: 32 lines of one sector per instruction, at random in the footprint"""

    name: ClassVar[str] = "random"

    op: Annotated[str, fields.one_of("read", "write")] = Field(default="read", description="read or write")
    footprint: Footprint = Field(default=128 * 2**20, description="bytes of the array")
    operations: Annotated[int, fields.count(1, 10**9)] = Field(
        default=57344, description="minimum number of instructions"
    )
    warps_per_block: WarpsPerBlock = Field(default=8, description="warps per thread block")
    operations_per_warp: OpsPerWarp = Field(default=4, description="instructions per warp")
    lines: Annotated[int, fields.count(1, LANES)] = Field(default=LANES, description="lines per instruction")
    use_distance: UseDistance = Field(default=1, description="instructions from a load to its first use; 0: never")
    seed: Seed = Field(default=0, description="seed of the addresses")

    def check(self) -> None:
        if not LINE_BYTES * self.lines <= self.footprint <= 2**39:
            raise ValueError(f"footprint: {self.footprint} B: expected {LINE_BYTES * self.lines} B to 512 GiB")

    def write(self, writer: TraceWriter) -> None:
        base = self.allocate(writer, {"array": self.footprint})["array"]
        range_entries = (
            self.footprint // LINE_BYTES // self.lines
        )  # of each lane: no line occurs twice in an instruction
        writes = self.op == "write"
        operation = (
            store(lines=self.lines, bytes_per_lane=SECTOR_BYTES)
            if writes
            else load(lines=self.lines, use_distance=self.use_distance)
        )
        warp = np.arange(self.warps_per_block, dtype=np.uint64).reshape(1, -1, 1, 1)
        step = np.arange(self.operations_per_warp, dtype=np.uint64).reshape(1, 1, -1, 1)
        lane = np.arange(self.lines, dtype=np.uint64)

        def lines_of(block: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
            number = (block * np.uint64(self.warps_per_block) + warp) * np.uint64(self.operations_per_warp) + step
            counter = number * np.uint64(self.lines) + lane
            entry = lane * np.uint64(range_entries) + below(counter, range_entries, self.seed)
            sector = np.uint64(1) << below(counter, SECTORS, self.seed + 1)
            return line_records(base, entry, sector, sector if writes else 0)

        write_kernel(
            writer,
            f"random_{self.op}",
            blocks=-(-self.operations // (self.warps_per_block * self.operations_per_warp)),
            warps_per_block=self.warps_per_block,
            operations=[operation],
            repeats=self.operations_per_warp,
            lines_of=lines_of,
        )
