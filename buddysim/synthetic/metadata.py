"""Reads of some entries of each 8 KB page of an array in turn, which hit or miss in the metadata cache."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.compress import ENTRY_BYTES
from buddysim.machine import fields
from buddysim.synthetic.parts.kernels import line_records, load, write_kernel
from buddysim.synthetic.workload import WarpsPerBlock, Workload
from buddysim.trace import TraceWriter

PAGE_ENTRIES = 64


class MetadataWorkload(Workload):
    """some entries of one 8 KB page after the other, each entry once: a metadata miss per visit of a page"""

    name: ClassVar[str] = "metadata"

    pages: Annotated[int, fields.count(1, 2**22)] = Field(
        default=8192,
        description="8 KB pages; with more than the metadata cache has lines, every visit of a page misses",
    )
    entries_per_visit: Annotated[int, fields.count(1, PAGE_ENTRIES)] = Field(
        default=1, description="entries read per visit of a page"
    )
    laps: Annotated[int, fields.count(1, PAGE_ENTRIES)] = Field(
        default=2, description="visits of each page, each to other entries; at most 64 / entries_per_visit"
    )
    blocks: Annotated[int, fields.count(1, 2**16)] = Field(
        default=1, description="thread blocks, each with pages of its own"
    )
    warps_per_block: WarpsPerBlock = Field(default=1, description="warps per thread block, each with pages of its own")

    def check(self) -> None:
        if self.laps * self.entries_per_visit > PAGE_ENTRIES:
            raise ValueError(f"laps: {self.laps} laps of {self.entries_per_visit} entries: a page has {PAGE_ENTRIES}")
        if self.pages % (self.blocks * self.warps_per_block):
            raise ValueError(f"pages: {self.pages} is not a multiple of the {self.blocks * self.warps_per_block} warps")

    def write(self, writer: TraceWriter) -> None:
        base = self.allocate(writer, {"array": self.pages * PAGE_ENTRIES * ENTRY_BYTES})["array"]
        per_warp = self.pages // (self.blocks * self.warps_per_block)
        warp = np.arange(self.warps_per_block, dtype=np.uint64).reshape(1, -1, 1, 1)
        lap, page, visited = np.meshgrid(
            np.arange(self.laps), np.arange(per_warp), np.arange(self.entries_per_visit), indexing="ij"
        )
        entry = page * PAGE_ENTRIES + lap * self.entries_per_visit + visited
        within = entry.astype(np.uint64).reshape(1, 1, -1, 1)

        def lines_of(block: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
            first = (block * np.uint64(self.warps_per_block) + warp) * np.uint64(per_warp * PAGE_ENTRIES)
            return line_records(base, first + within, sectors=1)

        write_kernel(
            writer,
            "metadata_walk",
            blocks=self.blocks,
            warps_per_block=self.warps_per_block,
            operations=[load()],
            repeats=self.laps * per_warp * self.entries_per_visit,
            lines_of=lines_of,
        )
