"""Request streams that keep every channel of device memory busy, for the comparison of memory controllers.

Each of many warps waits for its loads before its next instruction; an instruction touches up to 32 lines. The kinds
are those of the reference simulated by DRAMsim3 (`buddysim.validation.dram`).
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.compress import SECTOR_BYTES
from buddysim.machine import fields
from buddysim.synthetic.parts.hashing import below
from buddysim.synthetic.parts.kernels import ALL_SECTORS, frames, line_records, load, store
from buddysim.synthetic.workload import Footprint, OpsPerWarp, Seed, WarpsPerBlock, Workload
from buddysim.trace import TraceWriter
from buddysim.trace.format import LINE_BYTES

SECTORS = 4
WRITES_OF_MIXED = 3
"""One run in so many is a write."""
KIND = re.compile(r"read|write|read_([1-9])_write_([1-9])|random_(32|64|128)(_mixed|_write)?|stride_([1-9]\d{0,3})")

U64 = npt.NDArray[np.uint64]


class DramStreams(Workload):
    """streams that keep device memory busy: in order, at random, strided; reads, writes and mixes"""

    name: ClassVar[str] = "dram-streams"

    kind: str = Field(
        default="read",
        description="read, write, read_2_write_1 (two arrays read, one written), random_32 (bytes in a row; 32, 64, "
        "128), random_32_mixed (a third are writes), random_32_write, stride_4 (a sector of every 4th line)",
    )
    warps: Annotated[int, fields.count(1, 2**20)] = Field(default=1792, description="number of warps")
    warps_per_block: WarpsPerBlock = Field(default=8, description="warps per thread block")
    operations: OpsPerWarp = Field(default=6, description="instructions per warp")
    lines: Annotated[int, fields.count(1, 32)] = Field(default=32, description="lines per instruction")
    footprint: Footprint = Field(
        default=2**30, description="bytes of the array from which random lines are sampled, or that streams share"
    )
    seed: Seed = Field(default=1, description="seed of the addresses")

    def check(self) -> None:
        if KIND.fullmatch(self.kind) is None:
            raise ValueError(f"kind: {self.kind!r} is not a stream: expected one such as read_2_write_1 or random_64")
        if self.warps % self.warps_per_block:
            raise ValueError(f"warps: {self.warps} is not a multiple of warps_per_block, {self.warps_per_block}")
        if self.footprint < LINE_BYTES * self.lines:
            raise ValueError(f"footprint: {self.footprint} B: expected at least {LINE_BYTES * self.lines} B")

    def write(self, writer: TraceWriter) -> None:
        writes, entries, masks = self.requests()
        base = self.allocate(writer, {"array": LINE_BYTES * (int(entries.max()) + 1)})["array"]
        ops = np.concatenate([load(lines=self.lines), store(lines=self.lines, bytes_per_lane=SECTOR_BYTES)])
        ops = ops[writes.astype(np.intp).reshape(-1)]
        ops["first_line"] = np.arange(len(ops), dtype=np.uint32) * np.uint32(self.lines)
        lines = line_records(base, entries, masks, masks * writes[:, :, None].astype(np.uint64))
        blocks = np.arange(self.warps // self.warps_per_block, dtype=np.uint64)
        size = (32 * self.warps_per_block, 1, 1)
        writer.begin_kernel(f"dram_{self.kind}", (len(blocks), 1, 1), size, registers=32)
        writer.add_blocks(*frames(blocks, self.warps_per_block, self.operations), ops, lines.reshape(-1))
        writer.end_kernel()

    def requests(self) -> tuple[npt.NDArray[np.bool_], U64, U64]:
        """Return for every instruction (warp, index in the warp): whether it writes, its entries, and their sectors."""
        shape = (self.warps, self.operations, self.lines)
        runs = KIND.fullmatch(self.kind)
        assert runs is not None
        reads, writes, run, end, stride = runs.groups()
        position = np.arange(self.operations)
        if run is not None:
            return self._random(shape, int(run) // SECTOR_BYTES, end)
        # the n-th instructions of all warps are adjacent, so that the arrays are accessed in order
        every = np.arange(self.warps * self.operations * self.lines, dtype=np.uint64)
        line: U64 = every.reshape(self.operations, self.warps, self.lines).transpose(1, 0, 2)
        if stride is not None:
            return np.zeros(shape[:2], np.bool_), line * np.uint64(stride), np.ones(shape, np.uint64)
        n_reads, n_writes = (
            (int(reads), int(writes)) if reads else (int(self.kind == "read"), int(self.kind == "write"))
        )
        array = (position[None, :] + np.arange(self.warps)[:, None]) % (n_reads + n_writes)  # another start per warp
        apart = np.uint64(self.footprint // LINE_BYTES // SECTORS)
        return array >= n_reads, line + apart * array[:, :, None].astype(np.uint64), np.full(shape, ALL_SECTORS, "u8")

    def _random(
        self, shape: tuple[int, int, int], sectors: int, end: str | None
    ) -> tuple[npt.NDArray[np.bool_], U64, U64]:
        """Return runs of sectors in random lines, no line twice in an instruction."""
        number = np.arange(np.prod(shape), dtype=np.uint64).reshape(shape)
        own = self.footprint // LINE_BYTES // self.lines  # entries of each lane
        entry = np.arange(self.lines, dtype=np.uint64) * np.uint64(own) + below(number, own, self.seed)
        first = below(number, SECTORS + 1 - sectors, self.seed + 1)
        masks = np.uint64((1 << sectors) - 1) << first
        is_write = below(number[:, :, 0], WRITES_OF_MIXED, self.seed + 2) == 0
        writes = {None: np.zeros_like(is_write), "_mixed": is_write, "_write": np.ones_like(is_write)}[end]
        return writes, entry, masks
