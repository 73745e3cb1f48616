"""Bytes of an activations file: the kinds of its sections, heads of values."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from buddysim.base.errors import SectionFileError
from buddysim.base.sections.section_format import SectionFormat


class ActivationsError(SectionFileError):
    """An activations file that can't be read or written."""


SECTIONS = SectionFormat("an activations file", b"\x8fMAPS\x01\r\n", 1, ActivationsError)
VALUES_HEAD = struct.Struct("<IIIBBH")
PROVENANCE, MAPS, POINT, VALUES, END = b"PROV", b"MAPS", b"PONT", b"VALU", b"DONE"
LONGEST_TEXT = 64 * 2**20
DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<f4"), 2: np.dtype("<f2"), 3: np.dtype("u1")}
