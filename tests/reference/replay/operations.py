"""The trace as plain objects: thread blocks of warps of memory instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from buddysim.trace import (
    FLAG_BYPASS_L1,
    FLAG_NO_RETURN,
    FLAG_TIMED,
    OP_ATOMIC,
    REPEATS_SHIFT,
    WORDS_SHIFT,
    Kernel,
    Trace,
)


class Line(NamedTuple):
    """A 128 B line that an instruction touches.

    Parameters
    ----------
    number : address / 128
    sectors : bit s: sector s is touched
    whole : bit s: a store writes all of sector s
    """

    number: int
    sectors: int
    whole: int


@dataclass(frozen=True)
class Op:
    """A memory instruction; the fields are those of docs/trace-format.md."""

    kind: int
    gap: int
    chain_cycles: int
    chain_steps: int
    use_distance: int
    use_cycles: int
    use_steps: int
    unit_slots: int
    bypasses_l1: bool
    timed: bool
    returns_nothing: bool
    meetings: int
    words_code: int
    lines: list[Line]


@dataclass(frozen=True)
class WarpProgram:
    """The memory instructions of a warp, and what it does after the last one."""

    number: int
    ops: list[Op]
    tail_gap: int
    tail_cycles: int
    tail_steps: int
    tail_unit_slots: int


@dataclass(frozen=True)
class BlockProgram:
    """A thread block's warps."""

    number: int
    warps: list[WarpProgram]


def read_blocks(trace: Trace, kernel: Kernel) -> list[BlockProgram]:
    """The thread blocks of a kernel, in the order of the file."""
    blocks = []
    for ref in kernel.chunks:
        chunk = trace.decode_chunk(ref)
        lines = [Line(line >> 8, line & 15, line >> 4 & 15) for line in chunk.lines.tolist()]
        names = chunk.ops.dtype.names or ()
        ops = [_op(dict(zip(names, record, strict=True)), lines) for record in chunk.ops.tolist()]
        warps = [
            WarpProgram(number, ops[first : first + count], *tail)
            for number, first, count, *tail in chunk.warps.tolist()
        ]
        blocks += [BlockProgram(number, warps[first : first + count]) for number, first, count in chunk.blocks.tolist()]
    return blocks


def _op(record: dict[str, int], lines: list[Line]) -> Op:
    first, flags = record["first_line"], record["flags"]
    return Op(
        kind=record["kind"],
        gap=record["gap"],
        chain_cycles=record["chain_cycles"],
        chain_steps=record["chain_steps"],
        use_distance=record["use_distance"],
        use_cycles=record["use_cycles"],
        use_steps=record["use_steps"],
        unit_slots=record["unit_slots"],
        bypasses_l1=bool(flags & FLAG_BYPASS_L1),
        timed=bool(flags & FLAG_TIMED),
        returns_nothing=bool(flags & FLAG_NO_RETURN),
        meetings=flags >> REPEATS_SHIFT if record["kind"] == OP_ATOMIC else 0,
        words_code=flags >> WORDS_SHIFT if record["kind"] != OP_ATOMIC else 0,
        lines=lines[first : first + record["n_lines"]],
    )
