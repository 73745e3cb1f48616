"""Numpy dtypes of a decoded chunk's records; `records.pxd` describes each field."""

from __future__ import annotations

import numpy as np

OP_LOAD, OP_STORE, OP_ATOMIC, OP_BARRIER = range(4)
FLAG_BYPASS_L1, FLAG_TIMED, FLAG_NO_RETURN = 1, 2, 4
ATOMIC_CONFLICTS_SHIFT = BANK_WORDS_SHIFT = 3

OP_DTYPE = np.dtype(
    [
        ("first_line", "<u4"),
        ("gap_instructions", "<u4"),
        ("critical_path_cycles", "<u4"),
        ("critical_path_hops", "<u4"),
        ("use_distance", "<u4"),
        ("use_cycles", "<u4"),
        ("use_hops", "<u2"),
        ("n_lines", "u1"),
        ("kind", "u1"),
        ("bytes_per_lane", "u1"),
        ("flags", "u1"),
        ("unit_busy_slots", "<u2"),
    ]
)
WARP_DTYPE = np.dtype(
    [
        (name, "<u4")
        for name in (
            "warp",
            "first_op",
            "n_ops",
            "tail_gap_instructions",
            "tail_critical_path_cycles",
            "tail_critical_path_hops",
            "tail_unit_busy_slots",
        )
    ]
)
BLOCK_DTYPE = np.dtype([(name, "<u4") for name in ("block", "first_warp", "n_warps")])
LINE_DTYPE = np.dtype("<u8")
assert [dtype.itemsize for dtype in (OP_DTYPE, WARP_DTYPE, BLOCK_DTYPE)] == [32, 28, 12]
