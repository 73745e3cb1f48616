"""Small random traces on small random machines, each made from a seed: what `test_reference_machine.py` replays twice.

The machines are so small and slow that every mechanism of docs/explanation/replay-model.md binds in many of them:
caches of a few lines, a few MSHRs, narrow ports, short write queues, frequent refresh. A case is plain data: one that
fails can be cut down by hand.
"""

from __future__ import annotations

import json
import random
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import buddysim.trace as bt
from buddysim.buddy import TARGET, Targets
from buddysim.machine import Machine
from tests.replay.bare import PLAIN
from tests.trace.builders import records

Op = tuple[dict[str, int], list[int]]
Warp = tuple[dict[str, int], list[Op]]
Block = tuple[int, list[Warp]]

MIB = 1 << 20
RATIOS = [*TARGET, "16x", "16x"]


@lru_cache(maxsize=4)
def _machine(changed: str) -> Machine:
    return _base().with_overrides(json.loads(changed))


@cache
def _base() -> Machine:
    return Machine.load("p100-nvlink2").with_overrides(PLAIN)


@dataclass
class Launch:
    """A kernel of a case."""

    stream: int
    grid: int
    threads: int
    registers: int
    shared_memory: int
    code_bytes: int
    launch_index: int
    blocks: list[Block]


@dataclass
class Case:
    """The machine, the trace and the options of a run."""

    seed: int
    scheme: str
    machine: dict[str, Any]
    allocations: list[tuple[str, int, int, str]] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    targets: dict[int, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def make_machine(self) -> Machine:
        return _machine(json.dumps(self.machine))

    def make_targets(self, trace: bt.Trace) -> Targets:
        return Targets(trace, {index: TARGET[name] for index, name in self.targets.items()})


def write_case(case: Case, path: Path) -> Path:
    """Write the case's trace as a file."""
    indices: dict[int, int] = {}
    with bt.TraceWriter(path, bt.Provenance("test", "1", "random", "CC0", "", {})) as writer:
        for word, *rest in case.events:
            if word == "allocate":
                name, base, size, space = case.allocations[rest[0]]
                indices[rest[0]] = writer.add_allocation(name, base, size, space)
                assert indices[rest[0]] == rest[0]
            elif word == "free":
                writer.free_allocation(rest[0])
            elif word == "copy":
                writer.memcpy(*rest[:-1], **rest[-1]) if isinstance(rest[-1], dict) else writer.memcpy(*rest)
            elif word == "fill":
                writer.memset(*rest[:-1], **rest[-1]) if isinstance(rest[-1], dict) else writer.memset(*rest)
            elif word == "snapshot":
                point, classes = rest
                snapshot = writer.add_snapshot(point, "")
                for allocation, sizes in classes.items():
                    writer.add_size_map(snapshot, allocation, np.array(sizes, np.uint8))
            else:
                launch = rest[0]
                writer.begin_kernel(
                    f"kernel{launch.launch_index}",
                    (launch.grid, 1, 1),
                    (launch.threads, 1, 1),
                    launch.registers,
                    launch.shared_memory,
                    launch.stream,
                    launch.launch_index,
                    launch.code_bytes,
                )
                if launch.blocks:
                    writer.add_blocks(*records(launch.blocks))
                writer.end_kernel()
    return path


def _cycles(number: object) -> str:
    return f"{number} core_cycles"


def _sm_keys(r: random.Random) -> dict[str, Any]:
    warps = r.choice([1, 2, 3, 4, 8, 8, 16])
    return {
        "clock.core": r.choice(["1.3 GHz", "1 GHz", "777 MHz", "1500 MHz"]),
        "clock.dram": r.choice(["875 MHz", "1 GHz", "613 MHz"]),
        "sm.count": r.choice([1, 1, 2, 3]),
        "sm.schedulers": r.choice([1, 1, 2, 3]),
        "sm.policy": r.choice(["gto", "lrr"]),
        "sm.warps": warps,
        "sm.blocks": r.choice([1, 2, 3, 8]),
        "sm.threads": 32 * warps + r.choice([0, 0, 31, 64]),
        "sm.issue_interval": _cycles(r.choice([1, 1, 2, 3])),
        "sm.pipeline_latency": _cycles(r.choice([0, 4, 9])),
        "sm.assumed_instruction_latency": _cycles(r.choice([1, 6, "2.5"])),
        "sm.blocking_atomics": r.random() < 0.3,
        "sm.barrier_latency": _cycles(r.choice([0, 0, 5, 90])),
        "sm.barrier_arrival_interval": _cycles(r.choice([0, 0, 2, 30])),
        "sm.icache_miss_latency": _cycles(r.choice([0, 0, 50, 463])),
        "sm.icache_prefetch_lines": r.choice([0, 1, 3, 8]),
        "sm.split_conflicting_atomics": r.random() < 0.4,
        "sm.stall_on_busy_unit": r.random() < 0.4,
        "sm.exit_waits_for_stores": r.random() < 0.5,
        "kernel.launch_latency": r.choice(["0 ns", "100 ns", "1 us"]),
        "kernel.block_launch_interval": _cycles(r.choice([0, 1, 20, 300])),
        "kernel.block_overhead": _cycles(r.choice([0, 0, 5, 200])),
        "kernel.warp_launch_interval": _cycles(r.choice([0, 0, 3, 40])),
        "kernel.concurrent_kernels": r.random() < 0.75,
    }


def _cache_keys(r: random.Random) -> dict[str, Any]:
    l1_ways, l2_ways, slices, meta_ways, meta_slices = (
        r.choice([1, 2, 4]), r.choice([1, 2, 4, 8]), r.choice([1, 2, 4]), r.choice([1, 2]), r.choice([1, 2, 3]),
    )  # fmt: skip
    l1_sets = r.choice([1, 2, 3, 8])
    l2_size = 128 * l2_ways * slices * -(-r.choice([32, 32, 33, 48, 96]) // (slices * l2_ways))
    meta_line = r.choice([32, 32, 64, 128])
    partitions = r.choice([n for n in (1, 1, 2, 4) if slices % n == 0])
    word_banks = r.random() < 0.3
    return {
        "l1.enabled": r.random() < 0.85,
        "l1.ways": l1_ways,
        "l1.size": f"{128 * l1_ways * max(l1_sets, -(-4 // l1_ways))} B",
        "l1.load_to_use": _cycles(r.choice([10, 28, 82])),
        "l1.lines_per_cycle": 1 if word_banks else r.choice([1, 1, 2, 4]),
        "l1.bank_conflicts": "tag_and_data" if word_banks else "sector" if r.random() < 0.4 else "none",
        "l1.mshrs": r.choice([1, 2, 3, 8, 64]),
        "l1.max_mshr_merges": r.choice([0, 0, 1, 2, 7]),
        "crossbar.input_queued": partitions == 1 and r.random() < 0.4,
        "crossbar.request_bandwidth": r.choice(["32 B/core_cycle", "4 B/core_cycle", "1 B/core_cycle", "7 GB/s"]),
        "crossbar.reply_bandwidth": r.choice(["32 B/core_cycle", "4 B/core_cycle", "1 B/core_cycle", "7 GB/s"]),
        "l2.slices": slices,
        "l2.ways": l2_ways,
        "l2.size": f"{l2_size} B",
        "l2.load_to_use": _cycles(r.choice([100, 193, 234])),
        "l2.bandwidth": r.choice(["64 B/core_cycle", "5 B/core_cycle", "1 B/core_cycle", "11 GB/s"]),
        "l2.mshrs": r.choice([1, 2, 3, 8, 64]),
        "l2.atomic_interval": _cycles(r.choice([1, 1, 40, 200])),
        "l2.dirty_store_interval": _cycles(r.choice([0, 0, 1, 30])),
        "l2.max_dirty": f"{r.choice([0, 0, 1, 3, 5]) * l2_size // (4 * l2_ways)} B",
        "l2.fetch_granularity": r.choice(["32 B", "64 B"]),
        "l2.partitions": partitions,
        "l2.partition_latency": _cycles(r.choice([0, 31, 100])),
        "l2.fill_on_memcpy": r.random() < 0.6,
        "metadata_cache.ways": meta_ways,
        "metadata_cache.slices": meta_slices,
        "metadata_cache.line": f"{meta_line} B",
        "metadata_cache.size": f"{meta_line * meta_ways * meta_slices * r.choice([1, 1, 2, 3])} B",
        "metadata_cache.hit_latency": _cycles(r.choice([0, 0, 5, 40])),
        "metadata_cache.lookup_interval": _cycles(r.choice([0, 1, 30, 200])),
        "metadata_cache.speculative_fetch": r.random() < 0.7,
        "metadata_cache.on_pending_line": r.choice(["speculate", "wait"]),
        "metadata_cache.cancel_misspeculated": r.random() < 0.5,
        "metadata_cache.perfect": r.random() < 0.15,
    }


def _dram_keys(r: random.Random, model: str) -> dict[str, Any]:
    slices_of = r.choice([1, 2, 4])
    banks = r.choice([1, 2, 4, 8, 16])
    groups = r.choice([g for g in (1, 2, 4) if g <= banks])
    write_high = r.choice([1, 2, 4, 7, 16, 32])
    refresh = r.random() < 0.5
    timing = {
        "tRCD": r.choice(["14 ns", "3 ns", "30 ns"]),
        "tRP": r.choice(["14 ns", "0 ns", "40 ns"]),
        "tCL": r.choice(["14 ns", "5 ns", "25 ns"]),
        "tCWL": r.choice(["5 dram_cycles", "1 ns", "20 ns"]),
        "tRAS": r.choice(["34 ns", "10 ns", "120 ns"]),
        "tCCD_S": r.choice(["2 dram_cycles", "1 dram_cycles", "6 ns"]),
        "tCCD_L": r.choice(["4 dram_cycles", "2 dram_cycles", "9 ns"]),
        "tRRD_S": r.choice(["4 dram_cycles", "1 ns", "20 ns"]),
        "tRRD_L": r.choice(["4 dram_cycles", "6 ns", "30 ns"]),
        "tFAW": r.choice(["16 ns", "0 ns", "100 ns"]),
        "tWR": r.choice(["16 ns", "3 ns", "80 ns"]),
        "tWTR": r.choice(["8 ns", "1 ns", "60 ns"]),
        "tRTW": r.choice(["12 dram_cycles", "1 dram_cycles", "50 ns"]),
        "tRTP": r.choice(["5 ns", "1 ns", "50 ns"]),
        "tRFC": r.choice(["260 ns", "20 ns", "100 ns"]),
        "tRFCSB": r.choice(["160 ns", "20 ns", "300 ns"]),
        "tREFI": r.choice(["3.9 us", "500 ns", "1100 ns"]) if refresh else "0 ns",
    }
    return {
        "dram.model": model,
        "dram.channels": slices_of,
        "dram.pseudo_channels": r.choice([1, 1, 2, 3]),
        "dram.pseudo_channel_bandwidth": r.choice(["14 GB/s", "3 GB/s", "9.7 GB/s", "32 GB/s"]),
        "dram.load_to_use": r.choice(["500 ns", "433 ns", "612 ns"]),
        "dram.row_bytes": r.choice(["1 KiB", "256 B", "128 B", "2 KiB"]),
        "dram.banks": banks,
        "dram.refresh": _beside(r, ["staggered", r.choice(["all_bank", "single_bank"])]),
        "dram.write_drain": r.choice(["interleaved", "exclusive"]),
        "dram.bank_groups": groups,
        "dram.write_high_watermark": write_high,
        "dram.write_low_watermark": r.randrange(write_high),
        **{f"dram.timing.{name}": value for name, value in timing.items()},
    }


def _beside(r: random.Random, choices: list[str]) -> str:
    """Choose without a draw: cases of a seed stay as they were before a key came."""
    return copy(r).choice(choices)


def _scheme_keys(r: random.Random) -> dict[str, Any]:
    page = r.choice([4, 4, 8])
    prefetch = page * r.choice([1, 2, 8])
    frame = r.choice([0, 0, prefetch, 2 * prefetch])
    keys = {
        "link.bandwidth": r.choice(["150 GB/s", "5 GB/s", "1.1 GB/s"]),
        "link.load_to_use": r.choice(["430 ns", "900 ns"]),
        "link.header_size": r.choice(["0 B", "0 B", "16 B", "32 B"]),
        "link.max_payload": r.choice(["128 B", "32 B", "64 B", "100 B", "256 B"]),
        "compression.latency": r.choice(["11 dram_cycles", "0 ns", "100 ns"]),
        "compression.initiation_interval": r.choice(["1 dram_cycles", "0 ns", "60 ns", "20 ns"]),
        "compression.fetch_whole_raw_entry": r.random() < 0.3,
        "buddy.bypass_1x": r.random() < 0.6,
        "buddy.eight_byte_class": r.random() < 0.5,
        "buddy.raw_sectors": _beside(r, ["whole", "single"]),
        "um.oversubscription": r.choice([0, 0.3, 0.5, 0.9]),
        "um.page_size": f"{page} KiB",
        "um.va_block_size": f"{prefetch} KiB",
        "um.eviction_granularity": f"{frame} KiB",
        "um.capacity": f"{r.choice([0, 0, 0, 3, 20]) * page} KiB",
        "um.initial_location": r.choice(["device", "device", "host"]),
        "um.eviction_order": r.choice(["lru_access", "lru_access", "lru_migration"]),
        "um.serialize_transfers": r.choice([False, False, True]),
        "um.fault_batch_latency": r.choice(["30 us", "1 us", "100 ns"]),
        "um.max_batch_faults": r.choice([1, 2, 4, 256]),
        "um.fault_service": r.choice(["immediate", "batched"] if (frame or page) >= prefetch else ["immediate"]),
        "um.zero_fill_untouched": r.choice([False, True]),
    }
    keys["um.fault_replay_scope"] = r.choice(["warp", "sm"] if keys["um.fault_service"] == "batched" else ["warp"])
    keys["um.max_pending_faults_per_sm"] = r.choice([0, 1, 3, 8, 56]) if keys["um.fault_replay_scope"] == "sm" else 0
    return keys


def _allocations(r: random.Random, busy: bool) -> list[tuple[str, int, int, str]]:
    results = []
    at = (1 << 33) + 128 * r.choice([0, 0, 1, 77, 4096])
    for number in range(r.choice([1, 2, 3, 4])):
        size = r.choice([20000, 65536] if busy else [128, 1000, 4096, 8192, 20000, 65536]) + r.choice([0, 0, 128, 37])
        space = "host" if r.random() < 0.1 else "device"
        results.append((f"a{number}", at, size, space))
        at += -(-size // 128) * 128 + r.choice([0, 128, 4096, 8192, 2 * MIB])
    return results


def _lines(r: random.Random, live: list[tuple[str, int, int, str]], count: int) -> list[tuple[int, int]]:
    """Return a kernel's working set: (line, sectors that lie within the allocation)."""
    whole = []
    for _, base, size, _ in live:
        entries = -(-size // 128)
        stride = r.choice([1, 1, 1, 2, 8, 64])
        first = r.randrange(entries)
        for k in range(count):
            entry = (first + k * stride) % entries
            left = size - 128 * entry
            whole.append((base // 128 + entry, 15 if left >= 128 else (1 << -(-left // 32)) - 1))
    return whole


def _op(r: random.Random, lines: list[tuple[int, int]], at: int, style: dict[str, Any]) -> Op:
    kind = r.choices([0, 1, 2, 3], style["kinds"])[0]
    fields = {
        "kind": kind,
        "gap_instructions": r.choice(style["instructions_between"]),
        "unit_busy_slots": r.choice([0, 0, 0, 3, 17]) if style["units"] else 0,
        "bytes_per_lane": r.choice([0, 4, 8]),
        "critical_path_cycles": r.choice(style["chains"]),
        "critical_path_hops": r.choice([0, 0, 1, 3]) if len(style["chains"]) > 2 else 0,
        "flags": bt.FLAG_TIMED if r.random() < style["timed"] else 0,
    }
    if kind == bt.OP_BARRIER:
        return fields, []
    if kind != bt.OP_STORE:
        fields["use_distance"] = r.choice([0, 1, 1, 2, 5, 12])
        fields["use_cycles"], fields["use_hops"] = r.choice([0, 1, 12]), r.choice([0, 0, 1, 2])
        if style["patient"]:
            fields["use_distance"], fields["use_cycles"] = 9, r.choice([100, 300])
        if r.random() < style["bypass"]:
            fields["flags"] |= bt.FLAG_BYPASS_L1
    if kind == bt.OP_ATOMIC and r.random() < 0.4:
        fields["flags"] |= bt.FLAG_NO_RETURN
        fields["use_distance"] = 0
    if kind == bt.OP_ATOMIC:
        fields["flags"] |= r.choice([0, 0, 1, 3, 31]) << bt.ATOMIC_CONFLICTS_SHIFT
    else:
        fields["flags"] |= r.choice([0, 0, 1, 5, 31]) << bt.BANK_WORDS_SHIFT
    count = min(r.choices([1, 2, 4, 8, 40], style["widths"])[0], len(set(lines)))
    if style["sequential"]:
        selected = [lines[(at + k) % len(lines)] for k in range(count)]
    else:
        selected = [r.choice(lines) for _ in range(count)]
    touched = []
    for number, inside in dict(selected).items():
        mask = inside if r.random() < style["full"] else (r.randint(1, 15) & inside) or 1
        whole = 0
        if kind == bt.OP_STORE:
            whole = mask if r.random() < style["full"] else mask & r.randint(0, 15)
        touched.append(number << 8 | whole << 4 | mask)
    return fields, touched


def _launch(
    r: random.Random,
    machine: dict[str, Any],
    live: list[tuple[str, int, int, str]],
    launch_index: int,
    busy: bool,
    sizes: random.Random | None,
) -> Launch:
    lines = _lines(r, live, r.choice([60, 120, 300] if busy else [3, 12, 60, 120, 300]))
    warps = r.randint(1, min(6, machine["sm.warps"]))
    grid = r.choice([1, 2, 4, 7, 12])
    loads, stores, atomics = r.choice([1, 3, 6]), r.choice([0, 1, 3, 6, 12]), r.choice([0, 0, 1])
    style = {
        "kinds": [loads, stores, atomics, r.choice([0, 0, 1])],
        "instructions_between": r.choice([[0], [0, 1, 2], [0, 3, 20, 100]]),
        "chains": r.choice([[0], [0, 1], [0, 1, 5, 30]]),
        "units": r.random() < 0.3,
        "timed": r.choice([0, 0.5, 1, 1]),
        "bypass": r.choice([0, 0, 0.3]),
        "widths": r.choice([[1, 0, 0, 0, 0], [6, 2, 2, 1, 0], [6, 2, 2, 2, 1], [1, 1, 1, 1, 3]]),
        "sequential": r.random() < 0.5,
        "full": r.choice([0, 0.5, 0.9, 1]),
        "patient": r.random() < 0.06,
    }
    blocks: list[Block] = []
    at = 0
    length = r.choice([1, 3, 6, 10, 14])
    if sizes is not None:
        grid, length = sizes.randint(1, 16), sizes.randint(4, 60)
    if busy:
        style["kinds"] = [1, r.choice([2, 4]), r.choice([0, 0, 1]), 0]
        length = max(length, 6)
    if style["patient"]:  # more loads than a warp can have pending
        style |= {
            "kinds": [19, 1, 0, 0],
            "instructions_between": [0],
            "chains": [0],
            "widths": [6, 1, 0, 0, 0],
            "timed": 1,
        }
        grid, length = min(grid, 2), 60
    missing = r.choice([0, 0, 0.05, 0.5])
    for number in range(grid):
        if r.random() < 0.05:
            continue
        block = []
        for warp in range(warps):
            if r.random() < missing:
                continue
            ops = []
            for _ in range(r.randint(0, length) if r.random() < 0.3 else length):
                ops.append(_op(r, lines, at, style))
                at += len(ops[-1][1])
            tail = {
                "tail_gap_instructions": r.choice([0, 0, 3, 40]),
                "tail_critical_path_cycles": r.choice([0, 2, 50]),
                "tail_critical_path_hops": r.choice([0, 1]),
                "tail_unit_busy_slots": r.choice([0, 0, 4, 19, 65535, 70000]) if style["units"] else 0,
            }
            block.append(({"warp": warp, **tail}, ops))
        if block or r.random() < 0.1:
            if r.random() < 0.1:
                r.shuffle(block)
            blocks.append((number, block))
    if r.random() < 0.1:
        r.shuffle(blocks)
    threads = 32 * warps - r.choice([0, 0, 5])
    registers, shared_memory = r.choice([0, 16, 33, 33, 255]), r.choice([0, 100, 300, 1000])
    code_bytes = r.choice([0, 16, 140, 1000, 5000, 300_000])
    return Launch(r.choice([0, 1, 1, 2, 3]), grid, threads, registers, shared_memory, code_bytes, launch_index, blocks)


def _tighten(r: random.Random, case: Case) -> None:
    """Limit registers and shared memory of an SM to those of a few thread blocks."""
    launches = [rest[0] for word, *rest in case.events if word == "kernel"]
    one = r.choice(launches)
    warps = {launch.launch_index: -(-launch.threads // 32) for launch in launches}
    least = max(warps[launch.launch_index] * -(-launch.registers * 32 // 256) * 256 for launch in launches)
    registers = r.choice([65536, 65536, 2 * warps[one.launch_index] * one.registers * 32, 7 * one.registers * 32])
    case.machine["sm.registers"] = max(least, registers, 32)
    memory = r.choice([65536, 65536, one.shared_memory, 2 * one.shared_memory])
    case.machine["sm.shared_memory"] = f"{max(memory, *(launch.shared_memory for launch in launches), 0)} B"


def _sizes(r: random.Random, allocations: list[tuple[str, int, int, str]]) -> dict[int, list[int]]:
    results = {}
    for index, (_, _, size, _) in enumerate(allocations):
        if r.random() < 0.15:
            continue
        entries = -(-size // 128)
        usual = r.choice([[0, 1], [7], [1], [1, 3], [0, 1, 2, 3, 4, 5, 6, 7], [1, 7], [4, 5, 15]])
        results[index] = [r.choice(usual) for _ in range(entries)]
    return results


def _moves(r: random.Random, live: list[tuple[str, int, int, str]]) -> list[tuple[Any, ...]]:
    """Add copies and fills."""
    results: list[tuple[Any, ...]] = []
    for _ in range(r.choice([0, 0, 1, 3])):
        _, base, size, _ = r.choice(live)
        first = r.choice([0, 0, r.randrange(size), r.randrange(-(-size // 128)) * 128])
        count = min(size - first, r.choice([1, 32, 128, 700, 4096, size]))
        word = r.choice(["htod", "htod", "dtoh", "dtod", "fill"])
        if word == "fill":
            results.append(("fill", base + first, count, r.choice([0, None])))
        elif word == "dtod":
            _, other, other_size, _ = r.choice(live)
            results.append(("copy", "dtod", base + first, min(count, other_size), other))
        else:
            results.append(("copy", word, base + first, count))
    return results


def _run_of_events(r: random.Random, case: Case, busy: bool, sizes: random.Random | None) -> list[int]:
    """Make the case's events; return the launch indexes of its snapshots."""
    late = {i for i in range(1, len(case.allocations)) if r.random() < 0.2}
    early = [i for i in range(len(case.allocations)) if i not in late]
    # allocations are numbered in the order in which they begin
    case.allocations = [case.allocations[i] for i in (*early, *sorted(late))]
    alloc_position = len(early)
    case.events = [("allocate", i) for i in range(alloc_position)]
    live, points = list(range(alloc_position)), [0]
    launch_index = 0
    for _ in range(r.choice([3, 4] if busy else [1, 1, 2, 3, 5])):
        case.events += _moves(r, [case.allocations[i] for i in live])
        case.events.append(
            ("kernel", _launch(r, case.machine, [case.allocations[i] for i in live], launch_index, busy, sizes))
        )
        launch_index += r.choice([1, 1, 1, 2])
        if r.random() < (0.9 if busy else 0.5):
            points.append(launch_index)
        gone = r.choice(live) if len(live) > 1 and r.random() < 0.3 else None
        if gone is not None:
            live.remove(gone)
            case.events.append(("free", gone))
            if r.random() < 0.6:  # comes back to the same address, perhaps while kernels still run
                case.allocations.insert(alloc_position, (f"again{launch_index}", *case.allocations[gone][1:]))
        if alloc_position < len(case.allocations):
            case.events.append(("allocate", alloc_position))
            live.append(alloc_position)
            alloc_position += 1
    case.events += [("allocate", i) for i in range(alloc_position, len(case.allocations))]
    return points


def with_copies_in_time(case: Case) -> Case:
    """Give a case's copies streams, host memory and latencies, and its machine copy engines."""
    r = random.Random(f"copies {case.seed} {case.scheme}")
    for number, event in enumerate(case.events):
        if event[0] in ("copy", "fill"):
            queued: dict[str, Any] = {"stream": r.choice([0, 1, 2, 3, 4])}
            if event[0] == "copy":
                queued |= {"host_memory": r.choice([None, "pinned", "pageable"])}
                queued |= {"latency_ps": r.choice([None, None, 1, 333_333])}
            case.events[number] = (*event, queued)
    rates = ["150 GB/s", "12.8 GB/s", "1.1 GB/s"]
    case.machine |= {
        "copies.timed": r.choice(["between", "all"]),
        "copies.engines": r.choice([1, 1, 2]),
        "copies.latency": r.choice(["0 ns", "100 ns", "1 us"]),
        **{f"copies.{which}_bandwidth": r.choice(rates) for which in ("h2d", "d2h", "pageable")},
    }
    return case


#: Part of a case's seed. It is fixed, so that a seed gives the same case when a scheme is renamed.
SEED_WORDS = {"bandwidth-compression": "bandwidth", "unified-memory": "um", "pinned-host": "host"}


def random_case(seed: int, scheme: str, model: str, *, larger: bool = False) -> Case:
    """Return the case of a seed, for a replay scheme and a model of device memory.

    With ``larger`` its kernels have 1 to 16 thread blocks of warps of 4 to 60 instructions.
    """
    r = random.Random(f"{seed} {SEED_WORDS.get(scheme, scheme)} {model}")
    case = Case(seed, scheme, _sm_keys(r) | _cache_keys(r) | _dram_keys(r, model) | _scheme_keys(r))
    busy = scheme in ("bandwidth-compression", "buddy") and r.random() < 0.7  # many write-backs of entries that change
    case.allocations = _allocations(r, busy)
    points = _run_of_events(r, case, busy, random.Random(f"larger {seed}") if larger else None)
    if r.random() < 0.9:
        case.events += [("snapshot", point, _sizes(r, case.allocations)) for point in points]
    _tighten(r, case)
    case.targets = {
        i: r.choice(RATIOS) for i, (*_, space) in enumerate(case.allocations) if space == "device" and r.random() < 0.8
    }
    case.options = {"seed": r.randrange(100), "size_distribution": r.choice(["isca20-hpc", "isca20-dl"])}
    if r.random() < 0.1:
        case.options["compute_gap_scale"] = r.choice([0.5, 2, 1.05, Fraction(1, 3)])
    launches = sum(word == "kernel" for word, *_ in case.events)
    if r.random() < 0.15:
        first = r.randrange(launches)
        case.options["kernels"] = slice(first, r.randint(first + 1, launches))
    case.machine["crossbar.interleave_requesters"] = bool(case.machine["crossbar.input_queued"]) and r.random() < 0.5
    case.machine["l2.slice_hash"] = r.choice(["xor_fold", "xor_fold", "ipoly"])
    case.machine["l2.interleave_granularity"] = f"{r.choice([128, 128, 256, 512])} B"
    case.machine["link.write_bandwidth"] = r.choice(["0 GB/s", "0 GB/s", "0.7 GB/s", "80 GB/s"])
    case.machine["l2.writeback_buffer"] = r.choice([0, 0, 0, 1, 2, 16])
    if r.random() < 0.3:
        size = r.choice(["256 B", "128 B", "48 B"])
        case.machine |= {"link.protocol": "nvlink", "link.header_size": "0 B", "link.max_payload": size}
    return case
