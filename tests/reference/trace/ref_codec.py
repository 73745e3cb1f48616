"""Reference model of `codec`: a chunk's columns, one record at a time."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from buddysim.trace.format import FORMAT_VERSION, column_bytes, index_width
from buddysim.trace.records import (
    BLOCK_DTYPE,
    FLAG_BYPASS_L1,
    FLAG_NO_RETURN,
    FLAG_TIMED,
    LINE_DTYPE,
    OP_BARRIER,
    OP_DTYPE,
    OP_LOAD,
    WARP_DTYPE,
)

ESCAPE = -(1 << 31)
WARP_FIELDS = (
    "warp",
    "n_ops",
    "tail_gap_instructions",
    "tail_critical_path_cycles",
    "tail_critical_path_hops",
    "tail_unit_busy_slots",
)
OP_FIELDS = (
    "gap_instructions",
    "critical_path_cycles",
    "critical_path_hops",
    "use_distance",
    "use_cycles",
    "use_hops",
    "n_lines",
    "kind",
    "bytes_per_lane",
    "flags",
    "unit_busy_slots",
)
OP_FIELD_CODES = "IIIIIHBBBBH"
INDEX_CODES = {1: "B", 2: "H", 4: "I"}


def encode(blocks: Any, warps: Any, ops: Any, lines: Any) -> tuple[bytes, int, int, int]:
    """(columns, number of op shapes, of warp shapes, of wide deltas)."""
    warp_shapes, warp_index = _table(tuple(int(warp[name]) for name in WARP_FIELDS) for warp in warps)
    op_shapes, op_index = _table(tuple(int(op[name]) for name in OP_FIELDS) for op in ops)
    deltas, wide = _deltas(warps, ops, lines)
    numbers = [int(block) for block in blocks["block"]]
    steps = [(number - before) % (1 << 32) for number, before in zip(numbers, [0, *numbers], strict=False)]
    columns = _column("I", steps) + _column("I", blocks["n_warps"])
    for field in range(len(WARP_FIELDS)):
        columns += _column("I", [shape[field] for shape in warp_shapes])
    columns += _column(INDEX_CODES[index_width(len(warp_shapes))], warp_index)
    for field, code in enumerate(OP_FIELD_CODES):
        columns += _column(code, [shape[field] for shape in op_shapes])
    columns += _column(INDEX_CODES[index_width(len(op_shapes))], op_index)
    columns += _column("B", [int(line) & 0xFF for line in lines])
    columns += _column("i", deltas) + _column("q", wide)
    return columns, len(op_shapes), len(warp_shapes), len(wide)


def _table(rows: Any) -> tuple[list[tuple[int, ...]], list[int]]:
    """Distinct rows in the order of their first occurrence, and each row's index among them."""
    numbers: dict[tuple[int, ...], int] = {}
    index = [numbers.setdefault(row, len(numbers)) for row in rows]
    return list(numbers), index


def _deltas(warps: Any, ops: Any, lines: Any) -> tuple[list[int], list[int]]:
    deltas, wide = [], []
    before = 0  # the line before this one in the chunk
    begun: dict[int, int] = {}  # where the last op at this position of a warp began
    for warp in warps:
        for position in range(int(warp["n_ops"])):
            op = ops[int(warp["first_op"]) + position]
            for i in range(int(op["n_lines"])):
                number = int(lines[int(op["first_line"]) + i]) >> 8
                expected = begun.get(position, before) if i == 0 else before
                if i == 0:
                    begun[position] = number
                if ESCAPE < number - expected < 1 << 31:
                    deltas.append(number - expected)
                else:
                    deltas.append(ESCAPE)
                    wide.append(number - expected)
                before = number
    return deltas, wide


def _column(code: str, values: Any) -> bytes:
    return struct.pack(f"<{len(values)}{code}", *(int(value) for value in values))


def decode(
    columns: bytes,
    n_blocks: int,
    n_warps: int,
    n_ops: int,
    n_lines: int,
    n_op_shapes: int,
    n_warp_shapes: int,
    n_wide: int,
    grid_blocks: int = 1 << 32,
    block_warps: int = 1 << 32,
    version: int = FORMAT_VERSION,
) -> tuple[Any, Any, Any, Any]:
    """(blocks, warps, ops, lines); ValueError where the columns contradict themselves."""
    op_fields = OP_FIELDS[:-1] if version == 1 else OP_FIELDS
    warp_fields = WARP_FIELDS[:-1] if version < 3 else WARP_FIELDS
    _require(n_op_shapes <= n_ops and n_warp_shapes <= n_warps and n_wide <= n_lines, "more shapes than records")
    size = column_bytes(n_blocks, n_warps, n_ops, n_lines, n_op_shapes, n_warp_shapes, n_wide, version)
    _require(len(columns) == size, "the columns' size")
    at = 0

    def take(code: str, n: int) -> tuple[int, ...]:
        nonlocal at
        layout = struct.Struct(f"<{n}{code}")
        at += layout.size
        return layout.unpack_from(columns, at - layout.size)

    block_steps, block_warp_counts = take("I", n_blocks), take("I", n_blocks)
    warp_shapes = list(zip(*(take("I", n_warp_shapes) for _ in warp_fields), strict=True))
    warp_index = take(INDEX_CODES[index_width(n_warp_shapes)], n_warps)
    op_shapes = list(zip(*(take(code, n_op_shapes) for code in OP_FIELD_CODES[: len(op_fields)]), strict=True))
    op_index = take(INDEX_CODES[index_width(n_op_shapes)], n_ops)
    masks, deltas, wide = take("B", n_lines), take("i", n_lines), take("q", n_wide)
    for shape in op_shapes:
        _check_shape(dict(zip(op_fields, shape, strict=True)))
    _require(all(shape[0] < block_warps for shape in warp_shapes), "a warp's number")

    blocks = _blocks(block_steps, block_warp_counts, n_warps, grid_blocks)
    warps = _warps(warp_index, warp_shapes, n_ops)
    ops = np.zeros(n_ops, OP_DTYPE)
    for i, number in enumerate(op_index):
        _require(number < n_op_shapes, "an op's shape")
        for name, value in zip(op_fields, op_shapes[number], strict=True):
            ops[i][name] = value
    return blocks, warps, ops, _lines(warps, ops, masks, deltas, wide)


def _blocks(steps: Sequence[int], warp_counts: Sequence[int], n_warps: int, grid_blocks: int) -> Any:
    blocks = np.zeros(len(steps), BLOCK_DTYPE)
    number = first = 0
    for i, (step, count) in enumerate(zip(steps, warp_counts, strict=True)):
        number = (number + step) % (1 << 32)
        _require(number < grid_blocks, "a block's number")
        blocks[i] = (number, first, count)
        first += count
        _require(first <= n_warps, "the blocks' warps")
    _require(first == n_warps, "the blocks' warps")
    return blocks


def _warps(index: Sequence[int], shapes: Sequence[tuple[int, ...]], n_ops: int) -> Any:
    warps = np.zeros(len(index), WARP_DTYPE)
    first = 0
    for i, shape in enumerate(index):
        _require(shape < len(shapes), "a warp's shape")
        fields = dict(zip(WARP_FIELDS, shapes[shape], strict=False))  # old files have not all of them
        for name, value in fields.items():
            warps[i][name] = value
        warps[i]["first_op"] = first
        first += fields["n_ops"]
        _require(first <= n_ops, "the warps' ops")
    _require(first == n_ops, "the warps' ops")
    return warps


def _lines(warps: Any, ops: Any, masks: Sequence[int], deltas: Sequence[int], wide: Sequence[int]) -> Any:
    """The lines of every op, each op's ``first_line`` set."""
    lines = np.zeros(len(masks), LINE_DTYPE)
    line = before = n_escapes = 0
    begun: dict[int, int] = {}
    for warp in warps:
        for position in range(int(warp["n_ops"])):
            op = ops[int(warp["first_op"]) + position]
            op["first_line"] = line
            count = int(op["n_lines"])
            _require(line + count <= len(masks), "the ops' lines")
            for i in range(count):
                delta = deltas[line]
                if delta == ESCAPE:
                    _require(n_escapes < len(wide), "the wide deltas")
                    delta = wide[n_escapes]
                    n_escapes += 1
                before = (begun.get(position, before) if i == 0 else before) + delta
                if i == 0:
                    begun[position] = before
                _require(0 <= before < 1 << 56, "a line's address")
                sectors, whole = masks[line] & 15, masks[line] >> 4
                _require(sectors != 0 and whole & ~sectors == 0, "a line's masks")
                _require(op["kind"] != OP_LOAD or whole == 0, "a load's masks")
                lines[line] = before << 8 | masks[line]
                line += 1
    _require(line == len(masks) and n_escapes == len(wide), "the ops' lines")
    return lines


def _check_shape(op: dict[str, int]) -> None:
    _require(op["kind"] <= OP_BARRIER, "an op's kind")
    _require(op["n_lines"] <= 64 and (op["n_lines"] == 0) == (op["kind"] == OP_BARRIER), "an op's lines")
    known = FLAG_BYPASS_L1 | FLAG_TIMED | FLAG_NO_RETURN if op["kind"] == OP_BARRIER else 255
    _require(op["flags"] & ~known == 0, "an op's flags")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)
