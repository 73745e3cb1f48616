"""A working set that one thread block of each SM reads again and again: bandwidth of the L1, and of the L2 beyond it.

The loads of gpu-benches' ``gpu-cache`` (github.com/te42kyfo/gpu-benches): all blocks read the same set.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.machine import fields
from buddysim.synthetic.parts.kernels import line_records, load, write_kernel
from buddysim.synthetic.workload import Footprint, OpsPerWarp, UseDistance, WarpsPerBlock, Workload
from buddysim.trace import TraceWriter
from buddysim.trace.format import LINE_BYTES


class SmLoads(Workload):
    """a working set that a block of each SM reads again and again, the same for all: bandwidth of L1 and L2"""

    name: ClassVar[str] = "sm-loads"

    footprint: Footprint = Field(default=64 * 2**10, description="bytes of the set, whole lines")
    blocks: Annotated[int, fields.count(1, 2**16)] = Field(default=56, description="thread blocks, one per SM")
    warps_per_block: WarpsPerBlock = Field(default=8, description="warps per thread block")
    warm: OpsPerWarp = Field(default=64, description="loads per warp of the second kernel")
    loads: OpsPerWarp = Field(default=256, description="loads per warp by which the third kernel has more")
    use_distance: UseDistance = Field(default=32, description="instructions from a load to its first use; 0: never")

    def check(self) -> None:
        if self.footprint % LINE_BYTES:
            raise ValueError(f"footprint: {self.footprint} B is not a multiple of {LINE_BYTES} B")

    def write(self, writer: TraceWriter) -> None:
        base = self.allocate(writer, {"set": self.footprint})["set"]
        lines = self.footprint // LINE_BYTES
        warp = np.arange(self.warps_per_block, dtype=np.uint64).reshape(1, -1, 1, 1)
        once = -(-lines // (self.blocks * self.warps_per_block))
        for repeats, apart in ((once, True), (self.warm, False), (self.warm + self.loads, False)):
            step = np.arange(repeats, dtype=np.uint64).reshape(1, 1, -1, 1)
            iteration = step * np.uint64(self.warps_per_block) + warp

            def lines_of(
                block: npt.NDArray[np.uint64], iteration: npt.NDArray[np.uint64] = iteration, first: int = once * apart
            ) -> npt.NDArray[np.uint64]:
                start = block * np.uint64(first * self.warps_per_block)
                return line_records(base, (start + iteration) % np.uint64(lines))

            write_kernel(
                writer,
                "sm_loads",
                blocks=self.blocks,
                warps_per_block=self.warps_per_block,
                operations=[load(use_distance=self.use_distance)],
                repeats=repeats,
                lines_of=lines_of,
            )
