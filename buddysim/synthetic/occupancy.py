"""STREAM and stencils whose thread blocks fill a part of each SM: bandwidth of device memory against occupancy.

The kernels are those of ``gpu-stream`` in gpu-benches (github.com/te42kyfo/gpu-benches): each thread processes one
element of 8 B, and unused shared memory limits the resident blocks.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.machine import fields
from buddysim.synthetic.parts.kernels import ALL_SECTORS, line_records, load, store, write_kernel
from buddysim.synthetic.workload import Workload
from buddysim.trace import TraceWriter
from buddysim.trace.coalesce import bank_words_of
from buddysim.trace.format import LINE_BYTES

ELEMENT = 8
BEFORE = 2
"""Lines of an array before its first element."""
LOADED = {
    "init": (),
    "read": ((0, 0),),
    "scale": ((0, 0),),
    "triad": ((0, 0), (1, 0)),
    "triad4": ((0, 0), (1, 0), (2, 0)),
    "3pt": ((0, -1), (0, 0), (0, 1)),
    "5pt": ((0, -2), (0, -1), (0, 0), (0, 1), (0, 2)),
}
"""What each kernel loads: array, and the element's distance from the thread's own."""
Kernel = Annotated[str, fields.one_of(*LOADED)]

CODE = {
    "sm_70": {
        "init": (21, 2),
        "read": (14, 9),
        "scale": (14, 8, 2),
        "triad": (16, 0, 8, 2),
        "triad4": (18, 1, 0, 7, 2),
        "3pt": (17, 0, 0, 11, 2),
        "5pt": (17, 0, 0, 1, 0, 14, 1),
    },
    "sm_80": {
        "init": (21, 2),
        "read": (16, 7),
        "scale": (16, 6, 2),
        "triad": (18, 1, 5, 2),
        "triad4": (20, 1, 1, 5, 1),
        "3pt": (19, 0, 1, 9, 2),
        "5pt": (18, 0, 0, 1, 1, 12, 1),
    },
    "sm_90": {
        "init": (28, 2),
        "read": (19, 11),
        "scale": (20, 12, 2),
        "triad": (23, 1, 11, 2),
        "triad4": (26, 1, 0, 9, 2),
        "3pt": (22, 0, 1, 10, 2),
        "5pt": (19, 0, 0, 2, 0, 15, 2),
    },
}
"""Instructions before each load and store, and after the last one, as NVRTC 12.9 compiles the benchmark's kernels."""


def touched(distance: int, threads: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], int]:
    """Return the lines of a warp, relative to its first element's line, their sector masks, and its bank words."""
    offsets = (np.arange(threads) + distance) * ELEMENT
    sectors = np.unique(offsets // 32)
    lines = np.unique(sectors // 4)
    masks = [sum(1 << int(sector % 4) for sector in sectors if sector // 4 == line) for line in lines]
    return lines, np.array(masks, dtype=np.uint64), bank_words_of(offsets + BEFORE * LINE_BYTES, ELEMENT)


class OccupancyWorkload(Workload):
    """STREAM and stencils whose thread blocks fill a part of each SM: bandwidth of device memory by occupancy"""

    name: ClassVar[str] = "occupancy"

    op: Kernel = Field(
        default="read", description="init, read, scale, triad (three arrays), triad4 (four), 3pt, 5pt (stencils)"
    )
    threads: Annotated[int, fields.count(16, 1024)] = Field(default=256, description="threads per block")
    blocks: Annotated[int, fields.count(1, 2**20)] = Field(default=672, description="thread blocks of the first kernel")
    more: Annotated[int, fields.count(1, 2**20)] = Field(
        default=1344, description="thread blocks by which the second kernel has more"
    )
    shared_memory: Annotated[int, fields.size("0 B", "1 MiB")] = Field(
        default=32 * 2**10, description="bytes of shared memory of each block"
    )
    first: Annotated[int, fields.count(0, 2**22)] = Field(
        default=0,
        description="thread blocks of a kernel before these, which leaves the L2 as it is after a long run; 0: none",
    )
    code: Annotated[str, fields.one_of("none", *CODE)] = Field(
        default="none",
        description="other instructions: none, or as many as NVRTC 12.9 makes of the benchmark for an architecture",
    )

    def check(self) -> None:
        if self.threads % 16:
            raise ValueError(f"threads: {self.threads} is not a multiple of 16")

    def write(self, writer: TraceWriter) -> None:
        warps = -(-self.threads // 32)
        lanes = min(32, self.threads)
        span = self.threads * ELEMENT // LINE_BYTES  # lines of a block
        kernels = [self.first] * bool(self.first) + [self.blocks, self.blocks + self.more]
        size = sum(kernels) * self.threads * ELEMENT + 4 * LINE_BYTES
        names = ["a", "b", "c", "d"][: 1 + len({array for array, _ in LOADED[self.op]})]
        bases = [*self.allocate(writer, dict.fromkeys(names, size)).values()]
        stores = self.op != "read"
        accesses = [(1 + array, *touched(distance, lanes), 0) for array, distance in LOADED[self.op]]
        accesses += [(0, *touched(0, lanes), ALL_SECTORS)] * stores
        loads = len(accesses) - stores
        *gaps, tail = CODE[self.code][self.op] if self.code != "none" else [0] * (len(accesses) + 1)
        operations = [
            store(lines=len(lines), bytes_per_lane=ELEMENT, gap_instructions=gap_instructions)
            if whole
            else load(
                lines=len(lines),
                bytes_per_lane=ELEMENT,
                gap_instructions=gap_instructions,
                use_distance=max(1, loads - n + sum(gaps[n + 1 :])),
                bank_words=words,
            )
            for n, ((_, lines, _, words, whole), gap_instructions) in enumerate(zip(accesses, gaps, strict=True))
        ]
        warp = np.arange(warps, dtype=np.int64).reshape(1, -1, 1, 1) * (lanes * ELEMENT // LINE_BYTES)
        first = 0
        for blocks in kernels:

            def lines_of(block: npt.NDArray[np.uint64], first: int = first) -> npt.NDArray[np.uint64]:
                start = (block.astype(np.int64) + first) * span + warp + BEFORE
                parts = [
                    line_records(bases[array], (start + lines).astype(np.uint64), masks, whole)
                    for array, lines, masks, _, whole in accesses
                ]
                return np.concatenate(parts, axis=-1)

            write_kernel(
                writer,
                f"occupancy_{self.op}",
                blocks=blocks,
                warps_per_block=warps,
                operations=operations,
                repeats=1,
                lines_of=lines_of,
                threads=self.threads,
                shared_memory=self.shared_memory,
                tail_gap_instructions=tail,
            )
            first += blocks
