"""What the sections of a machine file have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict

from buddysim.machine import fields
from buddysim.machine.units import Bandwidth, Time

Duration = Annotated[Time, fields.duration()]
PositiveDuration = Annotated[Time, fields.duration(zero=False)]
Rate = Annotated[Bandwidth, fields.bandwidth()]
SteadyRate = Annotated[Bandwidth, fields.bandwidth(per_cycle=False)]
Switch = Annotated[bool, fields.switch()]


class Section(BaseModel):
    """A part of a machine: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False)
