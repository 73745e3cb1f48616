"""The trace as plain objects: thread blocks of warps of memory instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from buddysim.trace import (
    ATOMIC_CONFLICTS_SHIFT,
    BANK_WORDS_SHIFT,
    FLAG_BYPASS_L1,
    FLAG_NO_RETURN,
    FLAG_TIMED,
    OP_ATOMIC,
    Kernel,
    Trace,
)


class RefLine(NamedTuple):
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
class RefOperation:
    """A memory instruction; the fields are those of docs/reference/trace-format.md."""

    kind: int
    gap_instructions: int
    critical_path_cycles: int
    critical_path_hops: int
    use_distance: int
    use_cycles: int
    use_hops: int
    unit_busy_slots: int
    bypasses_l1: bool
    timed: bool
    returns_nothing: bool
    atomic_conflicts: int
    bank_words: int
    lines: list[RefLine]


@dataclass(frozen=True)
class RefWarpProgram:
    """The memory instructions of a warp, and its tail after the last one."""

    number: int
    ops: list[RefOperation]
    tail_gap_instructions: int
    tail_critical_path_cycles: int
    tail_critical_path_hops: int
    tail_unit_busy_slots: int


@dataclass(frozen=True)
class RefBlockProgram:
    """The warps of a thread block."""

    number: int
    warps: list[RefWarpProgram]


def read_blocks(trace: Trace, kernel: Kernel) -> list[RefBlockProgram]:
    """Return the thread blocks of a kernel, in the order of the file."""
    blocks = []
    for ref in kernel.chunks:
        chunk = trace.decode_chunk(ref)
        lines = [RefLine(line >> 8, line & 15, line >> 4 & 15) for line in chunk.lines.tolist()]
        names = chunk.ops.dtype.names or ()
        ops = [_op(dict(zip(names, record, strict=True)), lines) for record in chunk.ops.tolist()]
        warps = [
            RefWarpProgram(number, ops[first : first + count], *tail)
            for number, first, count, *tail in chunk.warps.tolist()
        ]
        blocks += [
            RefBlockProgram(number, warps[first : first + count]) for number, first, count in chunk.blocks.tolist()
        ]
    return blocks


def _op(record: dict[str, int], lines: list[RefLine]) -> RefOperation:
    first, flags = record["first_line"], record["flags"]
    return RefOperation(
        kind=record["kind"],
        gap_instructions=record["gap_instructions"],
        critical_path_cycles=record["critical_path_cycles"],
        critical_path_hops=record["critical_path_hops"],
        use_distance=record["use_distance"],
        use_cycles=record["use_cycles"],
        use_hops=record["use_hops"],
        unit_busy_slots=record["unit_busy_slots"],
        bypasses_l1=bool(flags & FLAG_BYPASS_L1),
        timed=bool(flags & FLAG_TIMED),
        returns_nothing=bool(flags & FLAG_NO_RETURN),
        atomic_conflicts=flags >> ATOMIC_CONFLICTS_SHIFT if record["kind"] == OP_ATOMIC else 0,
        bank_words=flags >> BANK_WORDS_SHIFT if record["kind"] != OP_ATOMIC else 0,
        lines=lines[first : first + record["n_lines"]],
    )
