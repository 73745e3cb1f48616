"""A pointer chase over entries that overflow their target: the latency of an access to buddy memory."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.compress import ENTRY_BYTES
from buddysim.machine import fields
from buddysim.synthetic.chase import ChaseWorkload
from buddysim.synthetic.parts.sizes import parse_pattern
from buddysim.synthetic.workload import Footprint


class BuddyLatency(ChaseWorkload):
    """a pointer chase over the entries that overflow (or fit) their target: latency of a buddy access"""

    name: ClassVar[str] = "buddy-latency"

    footprint: Footprint = Field(
        default=64 * 2**20, description="bytes of the allocation; a lap visits some of its entries"
    )
    sizes: Annotated[str, fields.text(200)] = Field(
        default="32 B:3, 128 B:1", description="compressed sizes of the entries, a repeating pattern of small and large"
    )
    visit: Annotated[str, fields.one_of("largest", "smallest")] = Field(
        default="largest", description="entries to visit: those of the pattern's largest or smallest size"
    )

    def check(self) -> None:
        super().check()
        if self.sizes == "none" or len(set(parse_pattern(self.sizes))) < 2:
            raise ValueError("sizes: expected a pattern with at least two sizes, for example '32 B:3, 128 B:1'")
        if not len(self.positions()):
            raise ValueError("footprint: it has no entry of that size")

    def positions(self) -> npt.NDArray[np.uint64]:
        """Return the entries of a lap that have the size to visit, in the order of the lap."""
        classes = parse_pattern(self.sizes)
        requested = classes.max() if self.visit == "largest" else classes.min()
        every = super().positions()
        entry = (every // np.uint64(ENTRY_BYTES) % np.uint64(len(classes))).astype(np.int64)
        selected: npt.NDArray[np.uint64] = every[classes[entry] == requested]
        return selected
