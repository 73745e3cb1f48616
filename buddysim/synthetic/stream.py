"""Streaming: every warp reads, writes or copies whole lines, neighbouring warps neighbouring lines."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.machine import fields
from buddysim.synthetic.parts.kernels import ALL_SECTORS, line_records, load, store, write_kernel
from buddysim.synthetic.workload import (
    Footprint,
    Gap,
    Laps,
    OpsPerWarp,
    Space,
    Switch,
    UseDistance,
    WarpsPerBlock,
    Workload,
)
from buddysim.trace import TraceWriter
from buddysim.trace.format import LINE_BYTES

Operation = Annotated[str, fields.one_of("read", "write", "copy")]


class StreamWorkload(Workload):
    """coalesced reads, writes or copies of whole lines: bandwidth of device memory"""

    name: ClassVar[str] = "stream"

    op: Operation = Field(default="read", description="read, write, or copy from one array to another")
    footprint: Footprint = Field(default=64 * 2**20, description="bytes of each array")
    laps: Laps = Field(default=1, description="kernels, each of which goes over the array once")
    warps_per_block: WarpsPerBlock = Field(default=8, description="warps per thread block")
    lines_per_warp: OpsPerWarp = Field(default=16, description="lines per warp, a thread block's width apart")
    use_distance: UseDistance = Field(
        default=1, description="instructions from a load to the first use of its result; 0: nothing uses it"
    )
    gap_instructions: Gap = Field(default=0, description="other instructions before each access")
    timed: Switch = Field(default=True, description="false: the latencies of the other instructions are unknown")
    space: Space = Field(default="device", description="memory of the arrays: device or host")

    def write(self, writer: TraceWriter) -> None:
        names = ("source", "destination") if self.op == "copy" else ("array",)
        bases = [*self.allocate(writer, dict.fromkeys(names, self.footprint), self.space).values()]
        reading = load(gap_instructions=self.gap_instructions, use_distance=self.use_distance, timed=self.timed)
        writing = store(gap_instructions=self.gap_instructions if self.op == "write" else 0, timed=self.timed)
        operations = {"read": [reading], "write": [writing], "copy": [reading, writing]}[self.op]
        whole = {"read": [0], "write": [ALL_SECTORS], "copy": [0, ALL_SECTORS]}[self.op]
        entries = -(-self.footprint // LINE_BYTES)
        tile = self.warps_per_block * self.lines_per_warp
        warp = np.arange(self.warps_per_block, dtype=np.uint64).reshape(1, -1, 1, 1)
        step = np.arange(self.lines_per_warp, dtype=np.uint64).reshape(1, 1, -1, 1)

        def lines_of(block: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
            entry = block * np.uint64(tile) + step * np.uint64(self.warps_per_block) + warp
            entry = np.minimum(entry, np.uint64(entries - 1))
            pairs = zip(bases, whole, strict=True)
            return np.concatenate([line_records(base, entry, ALL_SECTORS, mask) for base, mask in pairs], axis=-1)

        for _ in range(self.laps):
            write_kernel(
                writer,
                f"stream_{self.op}",
                blocks=-(-entries // tile),
                warps_per_block=self.warps_per_block,
                operations=operations,
                repeats=self.lines_per_warp,
                lines_of=lines_of,
            )

    def assumptions(self) -> dict[str, str]:
        assumed = super().assumptions()
        if not self.timed:
            assumed["compute_gaps"] = f"{self.gap_instructions} instructions of unknown latency before each access"
        return assumed
