"""Numpy dtypes of a decoded chunk's records; `records.pxd` describes each field."""

from __future__ import annotations

import numpy as np

OP_LOAD, OP_STORE, OP_ATOMIC, OP_BARRIER = range(4)
FLAG_BYPASS_L1, FLAG_TIMED, FLAG_NO_RETURN = 1, 2, 4
REPEATS_SHIFT = WORDS_SHIFT = 3

OP_DTYPE = np.dtype(
    [
        ("first_line", "<u4"),
        ("gap", "<u4"),
        ("chain_cycles", "<u4"),
        ("chain_steps", "<u4"),
        ("use_distance", "<u4"),
        ("use_cycles", "<u4"),
        ("use_steps", "<u2"),
        ("n_lines", "u1"),
        ("kind", "u1"),
        ("bytes_per_lane", "u1"),
        ("flags", "u1"),
        ("unit_slots", "<u2"),
    ]
)
WARP_DTYPE = np.dtype(
    [
        (name, "<u4")
        for name in ("warp", "first_op", "n_ops", "tail_gap", "tail_cycles", "tail_steps", "tail_unit_slots")
    ]
)
BLOCK_DTYPE = np.dtype([(name, "<u4") for name in ("block", "first_warp", "n_warps")])
LINE_DTYPE = np.dtype("<u8")
assert [dtype.itemsize for dtype in (OP_DTYPE, WARP_DTYPE, BLOCK_DTYPE)] == [32, 28, 12]
