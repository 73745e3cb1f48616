"""Run the engine on arrays, without a trace file: warps are lists of accesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from buddysim.machine import Machine
from buddysim.replay.compressed.numbers import compressed_numbers
from buddysim.replay.engine.event_loop import ReplayEngine
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.primitives.kinds import Placement
from buddysim.replay.schemes import REGISTRY
from buddysim.replay.schemes.buddy.keys import BuddyConfig
from buddysim.replay.schemes.buddy.numbers import metadata_numbers
from buddysim.trace import BLOCK_DTYPE, FLAG_TIMED, OP_DTYPE, WARP_DTYPE
from buddysim.trace.writer import Records

Op = tuple[int, Sequence[tuple[int, int, int]]]  # kind, lines of (entry, sector mask, whole mask)

#: Mechanisms that have tests of their own, off: packets without headers, metadata at their entry's slice, no write-back
#: buffer, raw entries that overflow whole, all pseudo-channels refreshed at once, copies that take no time.
PLAIN: dict[str, object] = {
    "link.protocol": "packets",
    "link.max_payload": "128 B",
    "metadata_cache.interleaving": "ideal",
    "l2.writeback_buffer": 0,
    "buddy.raw_sectors": "whole",
    "dram.refresh": "all_bank",
    "copies.timed": "none",
}

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


@lru_cache(maxsize=256, typed=True)
def tiny_machine(**overrides: object) -> Machine:
    """Return the paper's machine with small caches; keys as `l2__size`."""
    settings = {key.replace("__", "."): value for key, value in overrides.items()}
    return Machine.load("p100-nvlink2").with_overrides({**PLAIN, **TINY, **settings})


def link_read_ps(machine: Machine) -> int:
    """Return an idle read's time on the link, without headers, its transfer and the way to the L2 (ps)."""
    sector = 32 * 10**12 // machine.bytes_per_s(machine.link.bandwidth)
    return machine.ps(machine.link.load_to_use) - machine.ps(machine.l2.load_to_use) - sector


def all_numbers(machine: Machine) -> dict[str, Any]:
    """Return a machine in the engine's units, with what compressing schemes take."""
    buddy = machine.section_of(BuddyConfig)
    return {
        **engine_numbers(machine, Fraction(1)),
        **compressed_numbers(machine, buddy.eight_byte_class, buddy.raw_sectors == "single"),
        **metadata_numbers(machine),
    }


def run_warps(
    machine: Machine,
    warps: Sequence[Sequence[Op]],
    scheme: str = "ideal",
    *,
    regions: Sequence[tuple[int, int, int, int]] = ((0, 1024, 0, 4),),
    state: Sequence[int] | None = None,
    critical_path_cycles: int = 1,
    use: bool = True,
    warps_per_block: int = 1,
    gap_instructions: int = 0,
    unit_busy_slots: int = 0,
    queueing: bool = False,
) -> tuple[dict[str, Any], list[int]]:
    """Replay warps, `warps_per_block` to a thread block; return the counters and the final entry states."""
    records = np.zeros(len(warps), WARP_DTYPE)
    records["warp"] = np.arange(len(warps)) % warps_per_block
    records["n_ops"] = [len(warp) for warp in warps]
    records["first_op"] = np.cumsum(records["n_ops"]) - records["n_ops"]
    ops = np.zeros(sum(map(len, warps)), OP_DTYPE)
    ops["kind"] = [kind for warp in warps for kind, _ in warp]
    ops["n_lines"] = [len(touched) for warp in warps for _, touched in warp]
    ops["first_line"] = np.cumsum(ops["n_lines"]) - ops["n_lines"]
    ops["flags"], ops["critical_path_cycles"], ops["gap_instructions"] = (
        FLAG_TIMED,
        critical_path_cycles,
        gap_instructions,
    )
    ops["use_distance"], ops["use_cycles"], ops["unit_busy_slots"] = use, 1, unit_busy_slots
    lines = [entry << 8 | whole << 4 | mask for warp in warps for _, touched in warp for entry, mask, whole in touched]
    blocks = np.zeros(len(warps) // warps_per_block, BLOCK_DTYPE)
    blocks["first_warp"] = np.arange(len(blocks)) * warps_per_block
    blocks["n_warps"] = warps_per_block
    launch = Launch([(blocks, records, ops, np.array(lines, dtype=np.uint64))], warps=warps_per_block)
    count, final, _ = run_launches(machine, [launch], scheme, regions=regions, state=state, queueing=queueing)
    return count, final


@dataclass(frozen=True)
class Launch:
    """A kernel: its chunks, its start, and the resources of each of its thread blocks."""

    chunks: Sequence[Records]
    start_ps: int = 0
    warps: int = 1
    threads: int | None = None  # 32 per warp
    registers: int = 0
    shared: int = 0
    code_bytes: int = 0


def run_launches(
    machine: Machine,
    launches: Sequence[Launch],
    scheme: str = "ideal",
    *,
    regions: Sequence[tuple[int, int, int, int]] = ((0, 1024, 0, 4),),
    state: Sequence[int] | None = None,
    compute_gap_scale: Fraction = Fraction(1),
    queueing: bool = False,
    exact_order: bool = False,
) -> tuple[dict[str, Any], list[int], list[int]]:
    """Replay kernels with given starts; return the counters, the final entry states and the kernels' ends."""
    entries = -(-max(end for _, end, _, _ in regions) // 64) * 64
    array = np.array(state if state is not None else [0x77] * entries, dtype=np.uint8)
    array = np.concatenate([array, np.zeros(entries - len(array), np.uint8)])
    scheme_object = REGISTRY.find(scheme)()
    scheme_object.configure(machine, entries, None)
    rows = np.array(regions, dtype=np.int64)
    if scheme_object.allocations_in_host_memory:
        rows[:, 2] = Placement.HOST
    numbers = engine_numbers(machine, compute_gap_scale)
    engine = ReplayEngine(numbers, rows, array, scheme_object, machine.policies(), queueing, exact_order)
    for number, row in enumerate(rows):
        engine.begin_allocation(number, int(row[0]), int(row[1]), int(row[1]))
    for handle, launch in enumerate(launches):
        n_blocks = sum(len(blocks) for blocks, _, _, _ in launch.chunks)
        threads = 32 * launch.warps if launch.threads is None else launch.threads
        started = engine.start_kernel(
            handle,
            launch.start_ps,
            n_blocks,
            launch.warps,
            threads,
            launch.registers,
            launch.shared,
            launch.code_bytes,
        )
        assert started
    chunks = [iter(launch.chunks) for launch in launches]
    ended: dict[int, int] = {}
    while len(ended) < len(launches):
        word, handle = engine.run(1 << 40)
        assert word in ("chunk", "done")
        if word == "done":
            ended[handle] = engine.now_ps
            continue
        blocks, records, ops, lines = next(chunks[handle])
        arguments = (blocks.view(np.uint8), records.view(np.uint8), ops.view(np.uint8), lines, 0)
        assert engine.add_chunk(handle, *arguments) == ("taken", -1)
    count = {**engine.counters(), "dirty_left": engine.dirty_sectors()}
    return count, array.tolist(), [ended[handle] for handle in range(len(launches))]
