"""Which element of a tensor each lane of each warp accesses, instruction by instruction, from Triton's linear layouts.

The element of (register, lane, warp) is the exclusive or of the bases of their set bits. A basis of zeros means that
the lanes, registers or warps that differ in its bit hold copies of one element.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from buddysim.base.errors import BuddysimError
from buddysim.base.parsers.json_text import loads
from buddysim.capture.triton_kernels.ptx import Position

LANES: Final = 32

_OPERATIONS: Final = re.compile(
    r"\b(tt\.load|tt\.store|tt\.atomic_rmw|tt\.atomic_cas|ttg\.async_copy_global_to_local|"
    r"ttng\.async_tma_copy_global_to_local|ttng\.async_tma_copy_local_to_global)\b"
)
_FILE_POSITION: Final = re.compile(r'loc\("([^"]+)":(\d+):(\d+)\)$')
_NAMED: Final = re.compile(r'loc\("[^"]*"\((#loc\d*)\)\)$')
_CALL: Final = re.compile(r"loc\(callsite\((#loc\d*) at (#loc\d*)\)\)$")


@dataclass(frozen=True)
class AccessLayout:
    """Layout of an operation of the compiled kernel that accesses global memory.

    Attributes
    ----------
    kind : ``load``, ``store``, ``atomic``, ``async_copy``, ``tensor_load`` or ``tensor_store``
    position : in the source
    shape : of the tensor of pointers; empty: a scalar, or a tensor instruction
    element_bytes : of the tensor
    bases : coordinates by bit of the register, lane and warp number
    """

    kind: str
    position: Position | None
    shape: tuple[int, ...] = ()
    element_bytes: int = 4
    bases: tuple[tuple[tuple[int, ...], ...], ...] = ((), (), ())

    def registers(self) -> int:
        """Registers of a thread that hold different elements."""
        return 1 << sum(any(basis) for basis in self.bases[0])

    def elements(self, warps: int, per_instruction: int) -> npt.NDArray[np.int64]:
        """Return the element that each lane accesses, or the first of consecutive ones.

        Parameters
        ----------
        warps : of the program
        per_instruction : elements that a lane accesses in one instruction

        Returns
        -------
        int64 array (warps, instructions, 32): position in the flattened tensor
        """
        if not self.shape:
            return np.zeros((warps, 1, LANES), np.int64)
        registers = [basis for basis in self.bases[0] if any(basis)]
        of_register = self._offsets(registers, 1 << len(registers))[::per_instruction]
        of_lane = self._offsets(self.bases[1], LANES)
        of_warp = self._offsets(self.bases[2], warps)
        coordinates = of_warp[:, None, None] ^ of_register[None, :, None] ^ of_lane[None, None, :]
        strides = np.cumprod([1, *self.shape[:0:-1]])[::-1]
        return np.asarray((coordinates * strides).sum(axis=-1), np.int64)

    def owners(self, warps: int) -> npt.NDArray[np.bool_]:
        """Return whether a lane stores: bool array (warps, 32), of copies the first lane of the first warp."""
        if not self.shape:
            first = np.zeros((warps, LANES), np.bool_)
            first[0, 0] = True
            return first
        lanes = np.arange(LANES)
        numbers = np.arange(warps)
        lane_copies = sum(1 << bit for bit, basis in enumerate(self.bases[1]) if not any(basis))
        warp_copies = sum(1 << bit for bit, basis in enumerate(self.bases[2]) if not any(basis))
        result: npt.NDArray[np.bool_] = ((numbers & warp_copies) == 0)[:, None] & ((lanes & lane_copies) == 0)[None, :]
        return result

    def _offsets(self, bases: Any, count: int) -> npt.NDArray[np.int64]:
        """Return the coordinates of numbers 0 to `count` - 1: int64 array (count, dimensions)."""
        numbers = np.arange(count)
        result = np.zeros((count, len(self.shape)), np.int64)
        for bit, basis in enumerate(bases):
            result ^= ((numbers >> bit) & 1)[:, None] * np.asarray(basis, np.int64)
        return result


class LayoutReader:
    """A process that reads layouts; it is started by the first kernel and ends with `close`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def read(self, ttgir: Path, text: str) -> list[AccessLayout]:
        """Return the layouts of a kernel's accesses, in the order of its TTGIR.

        Parameters
        ----------
        ttgir : file with the text
        text : of the TTGIR
        """
        if self._process is None:
            program = Path(__file__).with_name("layout_program.py")
            self._process = subprocess.Popen(
                [sys.executable, str(program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # Ctrl-C is for the script
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{ttgir}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = loads(line, "capture triton: layouts") if line else {"error": "the process that reads layouts ended"}
        if isinstance(answer, dict):
            raise BuddysimError(f"capture triton: layouts of {ttgir.name}: {answer['error']}")
        positions = access_positions(text)
        if len(positions) != len(answer):
            raise BuddysimError(
                f"capture triton: {ttgir.name}: {len(answer)} accesses, {len(positions)} of them in its text"
            )
        return [_layout(access, position) for access, position in zip(answer, positions, strict=True)]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            process, self._process = self._process, None
            process.communicate()


def _layout(access: dict[str, Any], position: Position | None) -> AccessLayout:
    bases = tuple(
        tuple(tuple(int(number) for number in basis) for basis in access.get(name, ()))
        for name in ("registers", "lanes", "warps")
    )
    return AccessLayout(access["kind"], position, tuple(access["shape"]), access["bytes"], bases)


def access_positions(ttgir: str) -> list[Position | None]:
    """Return the source position of each access in a kernel's TTGIR, in the order of the text."""
    locations: dict[str, str] = {}
    uses: list[str] = []
    for line in ttgir.split("\n"):
        if line.startswith("#loc"):
            name, _, value = line.partition(" = ")
            locations[name] = value.strip()
        elif _OPERATIONS.search(line.partition(" loc(")[0]):
            match = re.search(r"loc\((#loc\d*)\)\s*$", line)
            uses.append(match[1] if match else "")
    return [_resolve(locations, use) for use in uses]


def _resolve(locations: dict[str, str], name: str) -> Position | None:
    """Return the position that a name stands for; of a call, that of the called function's code."""
    value = locations.get(name, "")
    if match := _FILE_POSITION.match(value):
        return Position(match[1], int(match[2]), int(match[3]))
    if match := _NAMED.match(value):
        return _resolve(locations, match[1])
    if match := _CALL.match(value):
        return _resolve(locations, match[1])
    return None
