"""A working set in chunks, which thread blocks on all SMs read in turn: bandwidth of the L2 and of device memory.

The loads are those of ``gpu-l2-cache`` in gpu-benches (github.com/te42kyfo/gpu-benches): a block reads a chunk of
512 KiB in pieces of 16 KiB, and the pieces of all chunks are interleaved.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.machine import fields
from buddysim.synthetic.parts.kernels import line_records, load, write_kernel
from buddysim.synthetic.workload import Laps, UseDistance, Workload
from buddysim.trace import TraceWriter

WARPS = 32
SEGMENTS = 32
"""Of a chunk: each of two loads of 256 B by every warp."""
CHUNK_BYTES = SEGMENTS * 2 * WARPS * 256


class L2Loads(Workload):
    """a working set in chunks of 512 KiB, which blocks on all SMs read in turn: bandwidth of the L2"""

    name: ClassVar[str] = "l2-loads"

    chunks: Annotated[int, fields.count(1, 2**16)] = Field(default=4, description="chunks of 512 KiB of the set")
    blocks: Annotated[int, fields.count(1, 2**16)] = Field(
        default=112, description="thread blocks of the first and second kernel; the third has twice as many"
    )
    kernels: Laps = Field(default=1, description="times that these three kernels run")
    use_distance: UseDistance = Field(default=8, description="instructions from a load to its first use; 0: never")

    def write(self, writer: TraceWriter) -> None:
        base = self.allocate(writer, {"set": self.chunks * CHUNK_BYTES})["set"]
        warp = np.arange(WARPS, dtype=np.uint64).reshape(1, -1, 1, 1) * np.uint64(2)
        segment = np.arange(SEGMENTS, dtype=np.uint64).reshape(1, 1, -1, 1) * np.uint64(self.chunks)
        within = (np.array([0, 1], dtype=np.uint64) + np.array([[0], [2 * WARPS]], dtype=np.uint64)).reshape(1, 1, 1, 4)

        def lines_of(block: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
            start = (segment + block % np.uint64(self.chunks)) * np.uint64(4 * WARPS)
            return line_records(base, start + warp + within)

        one = load(lines=2, bytes_per_lane=8, use_distance=self.use_distance)
        for blocks in (self.blocks, self.blocks, 2 * self.blocks) * self.kernels:
            write_kernel(
                writer,
                "l2_loads",
                blocks=blocks,
                warps_per_block=WARPS,
                operations=[one, one],
                repeats=SEGMENTS,
                lines_of=lines_of,
            )
