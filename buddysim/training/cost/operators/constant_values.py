"""Values that constants of operators may have: with them, no time is infinite, negative or beyond all numbers."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, Field

#: Of a file of constants: a text is no number, and an unknown key is an error.
STRICT: Final = ConfigDict(strict=True, extra="forbid")

#: A time in microseconds, a size, a part.
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
#: A fraction of a peak, or another divisor.
Rate = Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)]
#: An exponent of a norm.
Sharpness = Annotated[float, Field(ge=0.5, le=32, allow_inf_nan=False)]


def _tile(text: str) -> str:
    extents = text.split("x")
    if len(extents) != 2 or not all(extent.isdecimal() and len(extent) < 5 and int(extent) for extent in extents):
        raise ValueError("rows x columns, for example 128x64")
    return text


#: Rows and columns of a tile.
Tile = Annotated[str, AfterValidator(_tile)]
