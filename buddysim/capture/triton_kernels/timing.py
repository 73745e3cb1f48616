"""Times of a path's instructions: compute gaps, dependent chains and use distances, by the rules of the SASS import.

A path becomes the text of one warp of an Accel-Sim trace, whose parser times it. Accesses without active lanes are
instructions there, as on a GPU.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from buddysim.capture.triton_kernels.path import NOTHING, ProgramPath
from buddysim.capture.triton_kernels.sass import INSTRUCTION_BYTES, Sass, SassInstruction
from buddysim.importers.accelsim.header import KernelHeader
from buddysim.importers.accelsim.opcodes import Opcode, UnitTiming, classify, timing_of
from buddysim.importers.accelsim.parser import KernelParser

_ADDRESS: Final = 0x7F0000000000  # of every access: only its time counts here
_IMMEDIATE: Final = re.compile(r"0x([0-9a-f]+)\s*$")
_MEMORY: Final = ("LDS", "STS", "ATOMS", "LDSM", "STSM")
_TENSOR: Final = ("UTMALDG", "UTMASTG")

WarpTimes = tuple[npt.NDArray[np.void], npt.NDArray[np.void]]


class PathTimes:
    """Times of the warps that take one path.

    Parameters
    ----------
    sass : machine code
    path : of the program
    architecture : of the GPU: 80, 90, ..
    """

    def __init__(self, sass: Sass, path: ProgramPath, architecture: int) -> None:
        self._architecture = architecture
        self._path = path
        self._sass = sass
        self._known: dict[bytes, WarpTimes] = {}

    def of_warp(self, active: npt.NDArray[np.bool_]) -> WarpTimes:
        """Return a warp's operations, and its record with the tail; barriers are operations too.

        Parameters
        ----------
        active : whether each memory instruction of the path has an active lane
        """
        key = np.packbits(active).tobytes()
        times = self._known.get(key)
        if times is None:
            times = self._known[key] = self._time(active.tolist())
        return times

    def _time(self, active: list[bool]) -> WarpTimes:
        lines = []
        memory = iter(active)
        copies = _TensorCopies(self._sass, self._path)
        for index, access in zip(self._path.instructions, self._path.accesses, strict=True):
            instruction = self._sass.instructions[index]
            takes_part = next(memory) if access != NOTHING else None
            lines.append(copies.waiting(instruction) or _text(instruction, takes_part))
            if instruction.name == "UTMALDG":
                lines.append(copies.issued(instruction))
        text = f"#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = {len(lines)}\n" + "\n".join(lines) + "\n#END_TB\n"
        header = KernelHeader("", (1, 1, 1), (32, 1, 1), 0, 0, self._architecture, 0, 0, 0, 5, False)
        parser = KernelParser("SASS", header, partial(_classify, timing=timing_of(self._architecture)))
        parser.feed(text.encode())
        parser.finish()
        _, warps, ops, _, _ = parser.pop_records()
        return ops, warps


class _TensorCopies:
    """Lets a wait at a barrier in shared memory wait for the copies of tensors that it is for.

    Each copy is a group of asynchronous copies of its own. The waits of a path are for equally many copies each, in
    order: of `copies` copies and `waits` waits, the n-th wait is for the first ``n * copies / waits``.
    """

    def __init__(self, sass: Sass, path: ProgramPath) -> None:
        names = [sass.instructions[index] for index in path.instructions]
        self._copies = sum(each.name == "UTMALDG" for each in names)
        self._waits = sum(map(_is_wait, names))
        self._issued = self._waited = 0

    def issued(self, instruction: SassInstruction) -> str:
        """Return the line that closes the group of a copy."""
        self._issued += 1
        return f"{instruction.index * INSTRUCTION_BYTES:x} ffffffff 0 LDGDEPBAR 0 0 0"

    def waiting(self, instruction: SassInstruction) -> str:
        """Return the line of a wait; empty for any other instruction, or if there are no copies."""
        if not self._copies or not _is_wait(instruction):
            return ""
        self._waited += 1
        newest = max(0, self._issued - -(-self._waited * self._copies // self._waits))
        return f"{instruction.index * INSTRUCTION_BYTES:x} ffffffff 0 DEPBAR 0 0 {newest}"


def _is_wait(instruction: SassInstruction) -> bool:
    return instruction.name == "SYNCS" and "TRYWAIT" in instruction.opcode


def _classify(text: str, timing: UnitTiming) -> Opcode:
    """Return an opcode's properties; copies of tensors are timed as other asynchronous copies."""
    if text.split(".")[0] in _TENSOR:
        text = "LDGSTS.E.BYPASS.128" if text.startswith("UTMALDG") else "STG.E.128"
    return classify(text, timing)


def _text(instruction: SassInstruction, active: bool | None) -> str:
    """Return an instruction as a line of a trace of version 5; `active` is None for one without access."""
    destinations, sources = instruction.registers
    operands = f"{len(destinations)} {' '.join(destinations)}"
    inputs = f"{len(sources[:16])} {' '.join(sources[:16])}"
    mask = "ffffffff"
    if active is not None:
        mask = "ffffffff" if active else "00000000"
        memory = f"4 1 {_ADDRESS:#x} 4" if active else "4 0"
    elif instruction.name in _MEMORY:
        memory = f"4 1 {_ADDRESS:#x} 4"
    else:
        memory = "0"
    match = _IMMEDIATE.search(instruction.operands) if instruction.name == "DEPBAR" else None
    number = int(match[1], 16) if match else 0
    pc = instruction.index * INSTRUCTION_BYTES
    return f"{pc:x} {mask} {operands} {instruction.opcode} {inputs} {memory} {number}"
