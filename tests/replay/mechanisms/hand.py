"""A machine of round numbers and kernels of a few operations, whose times tests compute by hand.

All times are whole nanoseconds: a core cycle 1, a line 1 in the L1, a sector 1 on the crossbar and at a slice, 2 on
the bus of device memory and on the link; an L1 hit 20, an L2 hit 100 (50 to the slice, 50 back), device memory 200,
the link 300, the compressor 10.

There is one SM with one scheduler, an L1 of one set of 8 ways, one L2 slice of one set of 32, and one pseudo-channel
behind it, `simple`, so all accesses share them. A warp's first operation issues at 1 ns. Packets have no headers,
metadata lie at their slice, ways are free when memory accepts their lines, and raw entries that overflow move whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from buddysim.machine import Machine
from buddysim.trace import FLAG_TIMED, OP_ATOMIC, OP_BARRIER, OP_LOAD, OP_STORE
from buddysim.trace.writer import Records
from tests.replay.bare import PLAIN, Launch, run_launches
from tests.trace.builders import Op, records

NS = 1000
BUCKET = 1 << 16  # ps: a bucket of a port; requests use it from its start on, in the order of arrival

ROUND: dict[str, object] = {
    "clock.core": "1 GHz",
    "clock.dram": "1 GHz",
    "sm.count": 1,
    "sm.schedulers": 1,
    "sm.pipeline_latency": "4 ns",
    "sm.assumed_instruction_latency": "6 ns",
    "l1.size": "1 KiB",  # one set
    "l1.ways": 8,
    "l1.load_to_use": "20 ns",
    "l2.size": "4 KiB",  # one set
    "l2.slices": 1,
    "l2.ways": 32,
    "l2.load_to_use": "100 ns",
    "l2.bandwidth": "32 GB/s",
    "crossbar.request_bandwidth": "32 GB/s",
    "crossbar.reply_bandwidth": "32 GB/s",
    "metadata_cache.size": "128 B",
    "metadata_cache.slices": 1,
    "metadata_cache.ways": 4,
    "compression.latency": "10 ns",
    "compression.initiation_interval": "1 ns",
    "dram.model": "simple",
    "dram.channels": 1,
    "dram.pseudo_channels": 1,
    "dram.pseudo_channel_bandwidth": "16 GB/s",
    "dram.load_to_use": "200 ns",
    "dram.timing.tRCD": "10 ns",
    "dram.timing.tCL": "10 ns",
    "dram.timing.tRP": "10 ns",
    "dram.timing.tCCD_L": "2 ns",
    "dram.timing.tREFI": "0 ns",
    "link.bandwidth": "16 GB/s",
    "link.load_to_use": "300 ns",
}


@lru_cache(maxsize=256, typed=True)
def machine(**overrides: object) -> Machine:
    """The machine of round numbers; keys as `l2__size`."""
    keys = {key.replace("__", "."): value for key, value in overrides.items()}
    return Machine.load("p100-nvlink2").with_overrides({**PLAIN, **ROUND, **keys})


def load(*entries: int | tuple[int, int], **fields: int) -> Op:
    """Return a load of sector 0 of each entry, or of (entry, mask); the next instruction uses it.

    It issues a cycle after the operation before.
    """
    return _op(OP_LOAD, entries, {"use_distance": 1, "use_cycles": 1, **fields})


def store(*entries: int | tuple[int, int] | tuple[int, int, int], **fields: int) -> Op:
    """Return a store of sector 0 of each entry, or of (entry, mask[, mask of fully written sectors]); default: all."""
    return _op(OP_STORE, entries, fields)


def atomic(*entries: int | tuple[int, int], **fields: int) -> Op:
    """Return an atomic of sector 0 of each entry, or of (entry, mask); the next instruction uses its result."""
    return _op(OP_ATOMIC, entries, {"use_distance": 1, "use_cycles": 1, **fields})


def barrier(**fields: int) -> Op:
    """A barrier."""
    return _op(OP_BARRIER, (), fields)


def _op(kind: int, entries: Sequence[int | tuple[int, ...]], fields: dict[str, int]) -> Op:
    record = {"kind": kind, "flags": FLAG_TIMED, "critical_path_cycles": 1, **fields}
    lines = []
    for one in entries:
        entry, mask, whole = (*one, one[1])[:3] if isinstance(one, tuple) else (one, 1, 1)
        lines.append(entry << 8 | (whole if kind == OP_STORE else 0) << 4 | mask)
    return record, lines


def grid(*blocks: Sequence[Sequence[Op]], tail: dict[str, int] | None = None) -> Records:
    """Return a chunk of thread blocks of warps of operations; `tail` has the fields of every warp's tail."""
    numbered = []
    for number, block in enumerate(blocks):
        numbered.append((number, [({"warp": warp, **(tail or {})}, list(ops)) for warp, ops in enumerate(block)]))
    return records(numbered)


def run(
    machine: Machine,
    *warps: Sequence[Op],
    scheme: str = "ideal",
    regions: Sequence[tuple[int, int, int, int]] = ((0, 4096, 0, 4),),
    state: Sequence[int] | None = None,
    tail: dict[str, int] | None = None,
    exact_order: bool = False,
) -> dict[str, Any]:
    """Return the counters of a kernel of one thread block of these warps."""
    launch = Launch([grid(warps, tail=tail)], warps=len(warps))
    return run_launches(machine, [launch], scheme, regions=regions, state=state, exact_order=exact_order)[0]


def time_of(machine: Machine, *warps: Sequence[Op], **options: Any) -> int:
    """Return the end of a kernel of one thread block of these warps, in ps."""
    time_ps: int = run(machine, *warps, **options)["now_ps"]
    return time_ps
