"""Streaming over host memory: every sector crosses the link, in one direction or in both."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from buddysim.synthetic.stream import Operation, StreamWorkload
from buddysim.synthetic.workload import Footprint, Space


class LinkWorkload(StreamWorkload):
    """reads, writes or copies of arrays in host memory: bandwidth of the link, in one direction or both"""

    name: ClassVar[str] = "link"

    op: Operation = Field(default="read", description="read, write, or copy (both directions at once)")
    footprint: Footprint = Field(default=16 * 2**20, description="bytes of each array")
    space: Space = Field(default="host", description="memory of the arrays: device or host")
