"""A long trace over a large footprint: the memory of a run must not depend on the length of its trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.machine import fields
from buddysim.synthetic.parts.kernels import ALL_SECTORS, line_records, load, store, write_kernel
from buddysim.synthetic.workload import Footprint, Gap, OpsPerWarp, WarpsPerBlock, Workload
from buddysim.trace import TraceWriter
from buddysim.trace.format import LINE_BYTES

LOADS_PER_STORE = 3


class ScaleWorkload(Workload):
    """200 million memory instructions over 8 GB: kernels that read three lines and write one of them"""

    name: ClassVar[str] = "scale"
    trial: ClassVar[Mapping[str, str]] = {
        "footprint": "1 MB", "instructions": "30000", "instructions_per_kernel": "10000",
    }  # fmt: skip

    footprint: Footprint = Field(default=8 * 10**9, description="bytes of the array")
    instructions: Annotated[int, fields.count(1, 10**11)] = Field(
        default=200_000_000, description="minimum number of memory instructions"
    )
    instructions_per_kernel: Annotated[int, fields.count(1, 10**10)] = Field(
        default=20_000_000, description="minimum number of memory instructions per kernel"
    )
    warps_per_block: WarpsPerBlock = Field(default=8, description="warps per thread block")
    iterations_per_warp: OpsPerWarp = Field(
        default=16, description="iterations per warp: three lines read, one of them written"
    )
    gap_instructions: Gap = Field(default=2, description="other instructions before each access")

    def write(self, writer: TraceWriter) -> None:
        base = self.allocate(writer, {"array": self.footprint})["array"]
        entries = np.uint64(max(LOADS_PER_STORE, self.footprint // LINE_BYTES))
        iteration = [load(gap_instructions=self.gap_instructions)] * LOADS_PER_STORE + [
            store(gap_instructions=self.gap_instructions)
        ]
        masks = np.array([0] * LOADS_PER_STORE + [ALL_SECTORS], dtype=np.uint64).reshape(1, 1, 1, -1)
        read = np.array([*range(LOADS_PER_STORE), 0], dtype=np.uint64).reshape(1, 1, 1, -1)
        per_block = self.warps_per_block * self.iterations_per_warp
        warp = np.arange(self.warps_per_block, dtype=np.uint64).reshape(1, -1, 1, 1)
        step = np.arange(self.iterations_per_warp, dtype=np.uint64).reshape(1, 1, -1, 1)
        blocks_in_all = -(-self.instructions // (per_block * len(iteration)))
        blocks_per_kernel = -(-self.instructions_per_kernel // (per_block * len(iteration)))
        for first in range(0, blocks_in_all, blocks_per_kernel):

            def lines_of(block: npt.NDArray[np.uint64], first: int = first) -> npt.NDArray[np.uint64]:
                in_block = step * np.uint64(self.warps_per_block) + warp
                number = (block + np.uint64(first)) * np.uint64(per_block) + in_block
                return line_records(base, (number * np.uint64(LOADS_PER_STORE) + read) % entries, ALL_SECTORS, masks)

            write_kernel(
                writer,
                "scale",
                blocks=min(blocks_per_kernel, blocks_in_all - first),
                warps_per_block=self.warps_per_block,
                operations=iteration,
                repeats=self.iterations_per_warp,
                lines_of=lines_of,
            )
