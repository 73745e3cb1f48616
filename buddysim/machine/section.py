"""What the sections of a machine file have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

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


def field_keys(section: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """The dotted keys of a section and of the sections in it, with their fields, in their order."""
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from field_keys(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name, field
