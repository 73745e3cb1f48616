"""Loads from the L1 whose lanes are a number of words apart: the cost of strides compared with whole lines.

The loads are those of ``gpu-strides`` in gpu-benches (github.com/te42kyfo/gpu-benches). 32 warps of one block repeat
eight loads that are 16 B apart; odd warps read the memory after the even warps' 32 lanes.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.machine import fields
from buddysim.synthetic.parts.kernels import line_records, load, write_kernel
from buddysim.synthetic.workload import OpsPerWarp, Workload
from buddysim.trace import TraceWriter
from buddysim.trace.coalesce import bank_words_of
from buddysim.trace.format import LINE_BYTES

LANES, WARPS = 32, 32
WORD = 4
OFFSETS = (0, 4, 8, 12, 20, 16, 24, 28)


class L1Strides(Workload):
    """loads of a block whose lanes are a number of words apart, over and over: the L1's rate by stride"""

    name: ClassVar[str] = "l1-strides"

    stride: Annotated[int, fields.count(0, 64)] = Field(default=1, description="words of 4 B between lanes")
    warm: OpsPerWarp = Field(default=4, description="rounds of eight loads of the first kernel")
    rounds: OpsPerWarp = Field(default=64, description="rounds by which the second kernel has more")

    def write(self, writer: TraceWriter) -> None:
        base = self.allocate(writer, {"array": 2**16})["array"]
        lines: list[npt.NDArray[np.uint64]] = []
        masks: list[npt.NDArray[np.uint64]] = []
        codes = []
        for offset in OFFSETS:
            addresses = (np.arange(LANES) * self.stride + offset) * WORD
            codes.append(bank_words_of(addresses, WORD))
            sectors = np.unique(addresses // 32)
            own = np.unique(sectors // 4)
            lines.append(own.astype(np.uint64))
            masks.append(np.array([sum(1 << int(s % 4) for s in sectors if s // 4 == n) for n in own], dtype=np.uint64))
        within, sectors_of = np.concatenate(lines), np.concatenate(masks)
        shift = np.uint64(LANES * self.stride * WORD // LINE_BYTES)
        warp = np.arange(WARPS, dtype=np.uint64).reshape(1, -1, 1, 1) % np.uint64(2) * shift
        operations = [
            load(lines=len(own), use_distance=max(1, 8 - n), bank_words=code)
            for n, (own, code) in enumerate(zip(lines, codes, strict=True))
        ]
        for repeats in (self.warm, self.warm + self.rounds):
            write_kernel(
                writer,
                "l1_strides",
                blocks=1,
                warps_per_block=WARPS,
                operations=operations,
                repeats=repeats,
                lines_of=lambda _: line_records(base, within + warp, sectors_of),
            )
