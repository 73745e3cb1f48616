"""Pointer chase: each load of one warp depends on the previous one. Time per load is the load-to-use latency."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.compress import SECTOR_BYTES
from buddysim.machine import fields
from buddysim.synthetic.parts.hashing import permutation
from buddysim.synthetic.parts.kernels import line_records, load, write_kernel
from buddysim.synthetic.workload import Footprint, Laps, Seed, Space, Switch, Workload
from buddysim.trace import TraceWriter
from buddysim.trace.format import LINE_BYTES

MAX_HOPS = 2**24


class ChaseWorkload(Workload):
    """dependent loads of one warp over a footprint: load-to-use latencies of L1, L2, device memory, link"""

    name: ClassVar[str] = "chase"

    footprint: Footprint = Field(default=64 * 2**20, description="bytes over which a lap goes")
    stride: Annotated[int, fields.size("32 B", "1 GiB")] = Field(
        default=LINE_BYTES, description="distance between neighbouring positions"
    )
    order: Annotated[str, fields.one_of("random", "ascending")] = Field(
        default="random", description="order in which positions are visited"
    )
    first_hops: Annotated[int, fields.count(0, MAX_HOPS)] = Field(
        default=0,
        description="loads of a kernel before all others, which brings the lap into the L2; 0: no such kernel",
    )
    hops: Annotated[int, fields.count(1, MAX_HOPS)] = Field(default=16384, description="loads per kernel")
    kernels: Laps = Field(default=1, description="identical kernels in a row (the L1 is invalidated between them)")
    space: Space = Field(default="device", description="memory of the allocation: device or host")
    bypass_l1: Switch = Field(default=False, description="true: the L2 serves the loads")
    seed: Seed = Field(default=0, description="seed of the random order")

    def check(self) -> None:
        if self.stride % SECTOR_BYTES:
            raise ValueError(f"stride: {self.stride} B is not a multiple of {SECTOR_BYTES} B")
        if self.footprint // self.stride > MAX_HOPS:
            raise ValueError(f"footprint: {self.footprint // self.stride} positions: expected at most {MAX_HOPS}")

    def positions(self) -> npt.NDArray[np.uint64]:
        """Return the addresses of a lap in order, in bytes from the start of the allocation."""
        count = max(1, self.footprint // self.stride)
        order = permutation(count, self.seed) if self.order == "random" else np.arange(count)
        return order.astype(np.uint64) * np.uint64(self.stride)

    def write(self, writer: TraceWriter) -> None:
        base = self.allocate(writer, {"chain": self.footprint}, self.space)["chain"]
        positions = self.positions()
        sectors = np.uint64(1) << positions % np.uint64(LINE_BYTES) // np.uint64(SECTOR_BYTES)
        lap = line_records(base, positions // np.uint64(LINE_BYTES), sectors)
        for hops in [self.first_hops] * bool(self.first_hops) + [self.hops] * self.kernels:
            lines = np.resize(lap, hops).reshape(1, 1, -1, 1)
            write_kernel(
                writer,
                "chase",
                blocks=1,
                warps_per_block=1,
                operations=[load(bytes_per_lane=8, bypass_l1=self.bypass_l1)],
                repeats=hops,
                lines_of=lambda _, lines=lines: lines,  # type: ignore[misc]
            )
