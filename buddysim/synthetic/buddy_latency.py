"""A pointer chase over entries that overflow their target: the latency of an access to buddy memory."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from buddysim.machine import fields
from buddysim.synthetic.chase import Chase
from buddysim.synthetic.parts.sizes import parse_pattern
from buddysim.synthetic.workload import Footprint


class BuddyLatency(Chase):
    """a pointer chase over the entries that overflow (or fit) their target: latency of a buddy access"""

    name: ClassVar[str] = "buddy-latency"

    footprint: Footprint = Field(default=64 * 2**20, description="bytes of the allocation; a lap visits part of them")
    sizes: Annotated[str, fields.text(200)] = Field(
        default="32 B:3, 128 B:1", description="compressed sizes of the entries, a pattern of small ones and large ones"
    )
    visit: Annotated[str, fields.one_of("largest", "smallest")] = Field(
        default="largest", description="the entries to go over: those of the pattern's largest or smallest size"
    )

    def check(self) -> None:
        super().check()
        if self.sizes == "none" or len(set(parse_pattern(self.sizes))) < 2:
            raise ValueError("sizes: expected a pattern with at least two sizes, for example '32 B:3, 128 B:1'")
        if not len(self._visited()):
            raise ValueError("footprint: no entry to visit in it")

    def places(self) -> npt.NDArray[np.uint64]:
        """The visited ones of the entries of a lap."""
        return self._visited()

    def _visited(self) -> npt.NDArray[np.uint64]:
        classes = parse_pattern(self.sizes)
        wanted = classes.max() if self.visit == "largest" else classes.min()
        entries = super().places()
        chosen: npt.NDArray[np.uint64] = entries[
            classes[(entries % np.uint64(len(classes))).astype(np.int64)] == wanted
        ]
        return chosen
