"""Drives the engine with arrays, without a trace file: warps of lists of accesses."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from buddysim.machine import Machine
from buddysim.replay.engine.event_loop import Engine
from buddysim.replay.engine.kinds import Placement
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.schemes import REGISTRY
from buddysim.trace import BLOCK_DTYPE, FLAG_TIMED, OP_DTYPE, WARP_DTYPE

Op = tuple[int, Sequence[tuple[int, int, int]]]  # kind, lines of (entry, sector mask, whole mask)

#: Small caches, so that short traces evict; no refresh, so that times can be computed by hand.
TINY: dict[str, object] = {
    "sm.count": 2,
    "l1.size": "1 KiB",
    "l1.ways": 2,
    "l2.size": "8 KiB",
    "l2.slices": 4,
    "l2.ways": 4,
    "dram.channels": 4,
    "metadata_cache.size": "256 B",
    "metadata_cache.slices": 2,
    "metadata_cache.ways": 2,
    "dram.timing.tREFI": "0 ns",
}


def tiny_machine(**overrides: object) -> Machine:
    """The paper's machine with small caches; keys as `l2__size`."""
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    return Machine.load("p100-nvlink2").with_overrides({**TINY, **given})


def run_warps(
    machine: Machine,
    warps: Sequence[Sequence[Op]],
    scheme: str = "ideal",
    *,
    regions: Sequence[tuple[int, int, int, int]] = ((0, 1024, 0, 4),),
    state: Sequence[int] | None = None,
    chain_cycles: int = 1,
    use: bool = True,
    warps_per_block: int = 1,
    gap: int = 0,
    unit_slots: int = 0,
) -> tuple[dict[str, Any], list[int]]:
    """Replays warps, `warps_per_block` to a thread block; returns the counters and the final entry states."""
    entries = -(-max(end for _, end, _, _ in regions) // 64) * 64
    array = np.array(state if state is not None else [0x77] * entries, dtype=np.uint8)
    array = np.concatenate([array, np.zeros(entries - len(array), np.uint8)])
    ends = np.array([end for _, end, _, _ in regions])
    region = np.searchsorted(ends, np.arange(entries // 64) * 64, side="right")
    pages = np.minimum(region, len(ends) - 1).astype(np.uint32)
    ops = np.zeros(sum(map(len, warps)), OP_DTYPE)
    records = np.zeros(len(warps), WARP_DTYPE)
    lines: list[int] = []
    at = 0
    for number, warp in enumerate(warps):
        records[number]["warp"] = number % warps_per_block
        records[number]["first_op"], records[number]["n_ops"] = at, len(warp)
        for kind, touched in warp:
            ops[at]["kind"], ops[at]["first_line"], ops[at]["n_lines"] = kind, len(lines), len(touched)
            ops[at]["flags"], ops[at]["chain_cycles"], ops[at]["gap"] = FLAG_TIMED, chain_cycles, gap
            ops[at]["use_distance"], ops[at]["use_cycles"], ops[at]["unit_slots"] = use, 1, unit_slots
            lines += [entry << 8 | whole << 4 | mask for entry, mask, whole in touched]
            at += 1
    blocks = np.zeros(len(warps) // warps_per_block, BLOCK_DTYPE)
    blocks["first_warp"] = np.arange(len(blocks)) * warps_per_block
    blocks["n_warps"] = warps_per_block
    chosen = REGISTRY.find(scheme)()
    chosen.configure(machine, entries)
    rows = np.array(regions, dtype=np.int64)
    if chosen.on_host:
        rows[:, 2] = Placement.HOST
    engine = Engine(engine_numbers(machine, Fraction(1)), rows, pages, array, chosen)
    engine.start_kernel(0, 0, len(blocks), warps_per_block, 32 * warps_per_block, 0, 0)
    word = ""
    while word != "done":
        word, _ = engine.run(1 << 40)
        if word == "chunk":
            outside = engine.add_chunk(
                0,
                blocks.view(np.uint8),
                records.view(np.uint8),
                ops.view(np.uint8),
                np.array(lines, dtype=np.uint64),
                np.array([[0, entries, 0]], dtype=np.int64),
            )
            assert outside == -1
        assert word in ("chunk", "done")
    return {**engine.counters(), "dirty_left": engine.dirty_sectors()}, array.tolist()
