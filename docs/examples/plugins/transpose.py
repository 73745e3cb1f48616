"""A synthetic workload of your own: a matrix transposed without shared memory. Its rows are read whole; the lanes of a
store are a row apart, so that each of them writes 4 B of a line of its own."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from buddysim.machine import fields
from buddysim.synthetic import Workload
from buddysim.synthetic.parts.kernels import line_records, load, store, write_kernel
from buddysim.trace import TraceWriter

WARPS_PER_BLOCK = 8
WORDS_PER_LINE = 32  # of 4 B
WORDS_PER_SECTOR = 8


class Transpose(Workload):
    """transpose of a square matrix of 4-byte words: loads of one line, stores to 32 lines"""

    name: ClassVar[str] = "transpose"

    n: Annotated[int, fields.count(32, 2**15)] = Field(default=1024, description="rows and columns, a multiple of 32")

    def check(self) -> None:
        if self.n % WORDS_PER_LINE:
            raise ValueError(f"n: {self.n} is not a multiple of {WORDS_PER_LINE}")

    def write(self, writer: TraceWriter) -> None:
        bases = self.allocate(writer, dict.fromkeys(("matrix", "transposed"), 4 * self.n * self.n))
        lines_per_row = self.n // WORDS_PER_LINE
        warp = np.arange(WARPS_PER_BLOCK).reshape(1, -1, 1, 1)
        step = np.arange(lines_per_row).reshape(1, 1, -1, 1)
        lane = np.arange(32)

        def lines_of(block: np.ndarray) -> np.ndarray:
            row = block.astype(np.int64) * WARPS_PER_BLOCK + warp  # of the matrix, one per warp
            column = step * WORDS_PER_LINE + lane
            read = line_records(bases["matrix"], row * lines_per_row + step)
            sector = 1 << row % WORDS_PER_LINE // WORDS_PER_SECTOR
            written = line_records(bases["transposed"], column * lines_per_row + row // WORDS_PER_LINE, sector)
            return np.concatenate([read, written], axis=-1)

        write_kernel(
            writer,
            "transpose",
            blocks=self.n // WARPS_PER_BLOCK,
            warps_per_block=WARPS_PER_BLOCK,
            operations=[load(lines=1), store(lines=WORDS_PER_LINE)],
            repeats=lines_per_row,
            lines_of=lines_of,
        )
