"""The PTX of a compiled kernel: its accesses to global memory by source position, and a copy with numbered lines.

ptxas passes line numbers on to the machine code. The copy has the number of each line of PTX as its source line, so
that every instruction of the machine code names the line of PTX that it comes from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

_LOC: Final = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_FILE: Final = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"(?:\s*,.*)?$')
_GLOBAL: Final = re.compile(
    r"(?:@!?%p\d+\s+)?(?P<name>ld|st|atom|red|cp)\.(?P<modifiers>[a-z0-9_.:]*)(?P<tensor>\.tensor)?"
)
_BITS: Final = re.compile(r"(?:b|u|s|f|bf)(8|16|32|64|128)(?:x2)?$")
_PAIRS: Final = ("f16x2", "bf16x2")


class Position(NamedTuple):
    """A position in a source file; both numbers count from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True)
class PtxAccess:
    """An instruction of the PTX that accesses global memory.

    Attributes
    ----------
    line : of the PTX, from 1
    position : in the kernel's source
    kind : ``load``, ``store``, ``atomic``, ``async_copy``, ``tensor_load`` or ``tensor_store``
    bytes_per_lane : moved by each lane; 0 for the tensor instructions
    """

    line: int
    position: Position
    kind: str
    bytes_per_lane: int


@dataclass(frozen=True)
class Ptx:
    """Accesses of a kernel, and the source position of each line of its PTX (None where there is none)."""

    accesses: tuple[PtxAccess, ...]
    positions: tuple[Position | None, ...]

    def position(self, line: int) -> Position | None:
        """Return the source position of a line, from 1."""
        return self.positions[line - 1] if 0 < line <= len(self.positions) else None


def read_ptx(text: str) -> Ptx:
    """Read the accesses and positions of a kernel's PTX.

    Instructions of one piece of inline assembly have the position of its first one: each further line would count as
    a further line of the source.
    """
    lines = text.split("\n")
    files = {int(match[1]): match[2] for line in lines if (match := _FILE.match(line.strip()))}
    positions: list[Position | None] = []
    accesses: list[PtxAccess] = []
    now: Position | None = None
    inline = first = False
    for number, line in enumerate(lines, 1):
        code = line.strip()
        if code.startswith("// begin inline asm"):
            inline = first = True
        elif code.startswith("// end inline asm"):
            inline = False
        elif (match := _LOC.match(code)) and (first or not inline):
            now = Position(files.get(int(match[1]), ""), int(match[2]), int(match[3]))
            first = False
        elif inline and code.endswith(";"):
            first = False
        positions.append(now)
        if now is not None and (access := _access_of(code, number, now)):
            accesses.append(access)
    return Ptx(tuple(accesses), tuple(positions))


def _access_of(code: str, number: int, position: Position) -> PtxAccess | None:
    match = _GLOBAL.match(code)
    if match is None:
        return None
    name, modifiers = match["name"], match["modifiers"].split(".")
    if name == "cp":
        return _copy_of(code, modifiers, number, position)
    if "global" not in modifiers:
        return None
    kind = {"ld": "load", "st": "store", "atom": "atomic", "red": "atomic"}[name]
    elements = next((int(part[1:]) for part in modifiers if re.fullmatch(r"v\d+", part)), 1)
    element = next((int(bits[1]) for part in reversed(modifiers) if (bits := _BITS.match(part))), 32)
    if any(part in _PAIRS for part in modifiers):
        element *= 2
    return PtxAccess(number, position, kind, elements * element // 8)


def _copy_of(code: str, modifiers: list[str], number: int, position: Position) -> PtxAccess | None:
    if "bulk" in modifiers and "tensor" in modifiers:
        kind = "tensor_store" if re.search(r"\.global\.shared", code) else "tensor_load"
        return PtxAccess(number, position, kind, 0)
    if modifiers[0] == "async" and "global" in modifiers:
        size = re.search(r"\],\s*(0x[0-9a-fA-F]+|\d+)", code.partition("],")[2])
        return PtxAccess(number, position, "async_copy", int(size[1], 0) if size else 16)
    return None


def number_lines(text: str) -> str:
    """Return PTX of the same instructions whose source line is their line in `text`."""
    result = []
    depth = 0
    for number, line in enumerate(text.split("\n"), 1):
        code = line.strip()
        depth += (code == "{") - (code == "}")
        if _LOC.match(code):
            result.append("")
        elif depth and code.endswith(";") and not code.startswith((".", "//", "$", "{", "}", ")")):
            result.append(f".loc 1 {number} 0\n{line}")
        else:
            result.append(line)
    return "\n".join(result)
