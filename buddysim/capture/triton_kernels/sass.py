"""The machine code (SASS) of a compiled kernel, from the listing of nvdisasm: instructions and basic blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from buddysim.base.errors import BuddysimError

INSTRUCTION_BYTES: Final = 16

_LINE: Final = re.compile(r'//## File "[^"]*", line (\d+)')
_CODE: Final = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P[T\d]+)\s+)?([A-Z][A-Z0-9_.]*)\s*([^;]*);")
_SECTION: Final = re.compile(r"\.section\s+([^\s,]+)")
_LABEL: Final = re.compile(r"(\.L_x_\d+):")
_TARGET: Final = re.compile(r"`\((\.L_x_\d+)\)")
_REGISTER: Final = re.compile(r"(?<![A-Za-z0-9_])(U?R)(\d+)(?![A-Za-z0-9_])")
_WITHOUT_RESULT: Final = frozenset(
    (
        *("ST", "STG", "STS", "STL", "STSM", "RED", "REDG", "LDGSTS"),
        *("BAR", "MEMBAR", "DEPBAR", "LDGDEPBAR", "ERRBAR", "FENCE", "SYNCS", "ARRIVES", "UCGABAR_ARV", "UCGABAR_WAIT"),
        *("BRA", "BRX", "BRXU", "EXIT", "RET", "CALL", "BSSY", "BSYNC", "BREAK", "WARPSYNC", "YIELD", "KILL", "NOP"),
        *("CCTL", "CCTLL", "CCTLT", "NANOSLEEP", "WARPGROUP", "ELECT", "PMTRIG", "USETMAXREG"),
        *("UTMALDG", "UTMASTG", "UTMAPF", "UTMACMDFLUSH", "UTMACCTL"),
        *("ISETP", "FSETP", "DSETP", "HSETP2", "UISETP", "PLOP3", "UPLOP3", "PSETP", "R2P"),  # results are predicates
    )
)


@dataclass(frozen=True)
class SassInstruction:
    """An instruction of the machine code.

    Attributes
    ----------
    index : in the kernel, from 0
    opcode : with its modifiers
    predicate : ``P0`` or ``!P0``; empty: always executed
    operands : as text
    ptx_line : line of the PTX that it comes from; 0: none
    target : index of the instruction that it branches to; None: no branch
    """

    index: int
    opcode: str
    predicate: str
    operands: str
    ptx_line: int
    target: int | None = None

    @property
    def name(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def registers(self) -> tuple[list[str], list[str]]:
        """Destination and source registers, each named by the first of consecutive ones."""
        first, _, rest = self.operands.partition(",")
        if self.name in _WITHOUT_RESULT:
            first, rest = "", self.operands
        return _named(first), _named(rest)


def _named(text: str) -> list[str]:
    return [f"{kind}{number}" for kind, number in _REGISTER.findall(text)]


@dataclass
class Block:
    """A basic block: instructions ``first:end`` and the blocks that follow."""

    first: int
    end: int
    following: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Sass:
    """Machine code of a kernel."""

    instructions: tuple[SassInstruction, ...]
    blocks: tuple[Block, ...]
    code_bytes: int


def read_sass(listing: str, kernel: str) -> Sass:
    """Read the listing of ``nvdisasm -c -g`` of one kernel.

    Parameters
    ----------
    listing : output of nvdisasm
    kernel : name of the kernel, whose section alone is read
    """
    lines: list[tuple[str, str, str, int]] = []
    labels: dict[str, int] = {}
    line = 0
    inside = False
    for text in listing.split("\n"):
        stripped = text.strip()
        if match := _SECTION.match(stripped):
            inside = match[1] == f".text.{kernel}"
        if not inside:
            continue
        if match := _LINE.search(stripped):
            line = int(match[1])
        elif match := _LABEL.match(stripped):
            labels[match[1]] = len(lines)
        elif match := _CODE.search(text):
            lines.append((match[3], match[2] or "", match[4].strip(), line))
    if not lines:
        raise BuddysimError(f"capture triton: nvdisasm lists no code of {kernel}")
    instructions = tuple(
        SassInstruction(number, opcode, predicate, operands, origin, _target(opcode, operands, labels))
        for number, (opcode, predicate, operands, origin) in enumerate(lines)
    )
    last = max((each.index for each in instructions if each.name != "NOP"), default=-1)
    return Sass(instructions, _blocks(instructions), (last + 1) * INSTRUCTION_BYTES)


def _target(opcode: str, operands: str, labels: dict[str, int]) -> int | None:
    if opcode.partition(".")[0] not in ("BRA", "BRX"):
        return None
    match = _TARGET.search(operands)
    return labels.get(match[1]) if match else None


def _ends_block(instruction: SassInstruction) -> bool:
    return instruction.name in ("BRA", "BRX", "RET") or (instruction.name == "EXIT" and not instruction.predicate)


def _blocks(instructions: tuple[SassInstruction, ...]) -> tuple[Block, ...]:
    starts = {0}
    for each in instructions:
        if each.target is not None:
            starts.add(each.target)
        if _ends_block(each):
            starts.add(each.index + 1)
    firsts = sorted(start for start in starts if start < len(instructions))
    at = {first: number for number, first in enumerate(firsts)}
    blocks = [Block(first, end) for first, end in zip(firsts, [*firsts[1:], len(instructions)], strict=True)]
    for block in blocks:
        last = instructions[block.end - 1]
        conditional = bool(last.predicate) or _has_condition(last)
        if not _ends_block(last) or (last.name == "BRA" and conditional):
            block.following.extend([at[block.end]] if block.end in at else [])
        if last.target is not None and last.target in at:
            block.following.append(at[last.target])
    return tuple(blocks)


def _has_condition(branch: SassInstruction) -> bool:
    """Whether a branch has its condition among its operands (``BRA.U UP0, ..``) or in its name (``BRA.DIV``)."""
    parts = branch.opcode.split(".")
    named = "DIV" in parts or "CONV" in parts
    return branch.name == "BRA" and (named or re.search(r"(?<![A-Z0-9])!?U?P\d", branch.operands) is not None)
