"""The section of the clocks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from buddysim.machine import fields
from buddysim.machine.section import Section
from buddysim.machine.units import Frequency


class ClockConfig(Section):
    """The clocks that cycles in machine files refer to."""

    core: Annotated[Frequency, fields.frequency()] = Field(description="clock frequency of SMs, L1, crossbar and L2")
    dram: Annotated[Frequency, fields.frequency()] = Field(
        description="frequency of the command clock of device memory; HBM2 transfers twice per cycle, HBM3 four times"
    )
