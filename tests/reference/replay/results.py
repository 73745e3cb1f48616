"""The counters of a run, by the names of docs/reference/replay-counters.md."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.reference.replay.capacity import RefCapacity
from tests.reference.replay.numbers import FINE, PS_PER_S, SECTOR_BYTES
from tests.reference.replay.run import RefRun
from tests.reference.replay.sm.thread_blocks import RefRunningKernel

COUNTED = [
    "warp_instructions",
    "memory_instructions",
    "line_accesses",
    "load_sectors",
    "store_sectors",
    "l1.sector_accesses",
    "l1.sector_hits",
    "l1.sector_mshr_merges",
    "l1.sector_misses",
    "l1.line_accesses",
    "l1.line_hits",
    "l2.sector_mshr_merges",
    "l2.read_sectors",
    "l2.read_sector_hits",
    "l2.write_sectors",
    "l2.write_sector_hits",
    "l2.line_accesses",
    "l2.line_hits",
    "l2.read_sector_misses",
    "l2.fill_sectors",
    "l2.fills",
    "l2.writebacks",
    "l2.writeback_sectors",
    "l2.sectors_made_dirty",
    "l2.dirty_sectors_overwritten",
    "l2.dirty_sectors_freed",
    "metadata.accesses",
    "metadata.hits",
    "metadata.mshr_merges",
    "metadata.misses",
    "metadata.speculative_fills",
    "metadata.misspeculated_fills",
    "metadata.misspeculated_bytes",
    "metadata.cancelled_bytes",
    "device.metadata_bytes",
    "device.demand_bytes",
    "device.overfetch_bytes",
    "device.read_modify_write_bytes",
    "device.writeback_bytes",
    "device.row_hits",
    "device.row_misses",
    "link.read_bytes",
    "link.write_bytes",
    "link.demand_bytes",
    "link.overfetch_bytes",
    "link.read_modify_write_bytes",
    "link.writeback_bytes",
    "buddy.fills",
    "buddy.writebacks",
    "sizes.class_changes",
    "sizes.class_increases",
    "sizes.class_decreases",
    "trace.skipped_copies",
    "um.page_faults",
    "um.resident_bytes",
    "um.fault_handling_busy_ps",
    "um.pages_prefetched",
    "um.pages_evicted",
    "um.evicted_dirty_sectors",
    "link.migration_in_bytes",
    "link.migration_out_bytes",
]


def results_of(run: RefRun, capacity: RefCapacity) -> dict[str, Any]:
    """Return the counters of a run that has ended."""
    parts, counts = run.parts, run.counts
    cycle = parts.numbers.cycle
    counters: dict[str, Any] = {name: counts[name] for name in COUNTED}
    time_ps = max([run.copies.last_end, *(end for _, end, _ in run.ended)])
    touched = counts["l2.fills"] + counts["l2.writebacks"]
    buddy = counts["buddy.fills"] + counts["buddy.writebacks"]
    counters |= {
        "time_ps": time_ps,
        "cycles": time_ps // cycle,
        "l2.sector_accesses": counts["l2.read_sectors"] + counts["l2.write_sectors"],
        "l2.sector_hits": counts["l2.read_sector_hits"] + counts["l2.write_sector_hits"],
        "l2.dirty_sectors_at_end": sum(line.dirty.bit_count() for _, line in parts.l2.cache.all_lines()),
        "device.read_bytes": sum(
            counts[f"device.{kind}_bytes"] for kind in ("demand", "overfetch", "read_modify_write")
        ),
        "device.write_bytes": counts["device.writeback_bytes"],
        "device.bus_bytes": sum(parts.dram.bytes),
        "device.channel_bytes": parts.dram.bytes,
        **{f"device.channel_{kind}_bytes": moved for kind, moved in parts.dram.by_kind.items()},
        "device.queued_write_bytes": parts.dram.queued_bytes,
        "buddy.accesses": buddy,
        "buddy.access_fraction": fraction(buddy, touched),
        "latency.l1_miss_mean_ps": parts.times.l1_miss.mean_ps,
        "latency.l1_miss_histogram": parts.times.l1_miss.elements,
        "latency.l2_miss_histogram": parts.times.l2_miss.elements,
        **parts.times.waits.by_name(),
        **utilization_of(run, max(time_ps, 1)),
        "sizes.extrapolated_fraction": fraction(parts.sizes.extrapolated, parts.sizes.entries),
        "sizes.extrapolated_mean_fraction": parts.sizes.extrapolated_mean_fraction,
        **capacity.counters(
            [
                (k.kernel.event, k.launched)
                for k in sorted((k for k, *_ in run.ended), key=lambda k: (k.launched, k.kernel.event))
            ],
            time_ps,
        ),
        "per_kernel": [per_kernel(kernel, end, during, cycle) for kernel, end, during in run.ended],
        "per_allocation": per_allocation(run),
        "copies.moved": run.copies.timed,
        "copies.bytes": run.copies.bytes,
        "copies.busy_ps": run.copies.busy,
        "horizon.pushed": 0,
    }
    device = counters["footprint.used_device_bytes"]
    counters["footprint.used_device_bytes"] = min(device, counts["um.resident_bytes"] or device)
    return counters


def per_kernel(kernel: RefRunningKernel, end: int, during: Counter[str], cycle: int) -> dict[str, Any]:
    """Return a kernel's times, and the counts while it ran."""
    read = sum(during[f"device.{kind}_bytes"] for kind in ("demand", "overfetch", "read_modify_write"))
    return {
        "index": kernel.kernel.index,
        "name": kernel.kernel.name,
        "launch_index": kernel.kernel.launch_index,
        "launch_ps": kernel.launched,
        "time_ps": end - kernel.launched,
        "cycles": (end - kernel.launched) // cycle,
        "warp_instructions": during["warp_instructions"],
        "memory_instructions": during["memory_instructions"],
        "device_read_sectors": read // SECTOR_BYTES,
        "device_write_sectors": during["device.writeback_bytes"] // SECTOR_BYTES,
        "link_read_bytes": during["link.read_bytes"],
        "link_write_bytes": during["link.write_bytes"],
    }


def per_allocation(run: RefRun) -> list[dict[str, Any]]:
    """Return the counts below the L2 for each allocation's entries."""
    rows = []
    for region in run.parts.below.regions:
        allocation, counts = region.allocation_range.allocation, region.counts
        rows.append(
            {
                "index": allocation.index,
                "name": allocation.name,
                "bytes": allocation.bytes,
                "space": allocation.space,
                "target": run.targets.of(allocation.index).name if run.parts.scheme == "buddy" else "1x",
                "fills": counts["fills"],
                "writebacks": counts["writebacks"],
                "buddy_accesses": counts["buddy"],
                "buddy_access_fraction": fraction(counts["buddy"], counts["fills"] + counts["writebacks"]),
            }
        )
    return sorted(rows, key=lambda row: row["index"])


def fraction(part: int, whole: int) -> float:
    """Return a fraction; 0 if the whole is 0."""
    return part / whole if whole else 0.0


def utilization_of(run: RefRun, time_ps: int) -> dict[str, float]:
    """Return each resource's utilization."""
    parts, counts = run.parts, run.counts
    numbers, machine, sms = parts.numbers, parts.numbers.machine, parts.numbers.machine.sm.count
    bursts = [size // SECTOR_BYTES for size in parts.dram.bytes]
    link_byte_ps = PS_PER_S / machine.bytes_per_s(machine.link.bandwidth)
    written = machine.link.write_bandwidth
    link_write_byte_ps = PS_PER_S / machine.bytes_per_s(written) if written.amount else link_byte_ps
    slots = (counts["warp_instructions"] + counts["unit_busy_slots"]) * numbers.cycle
    sectors = counts["l2.read_sectors"] + counts["l2.write_sectors"]
    busy = {
        "dram_channels": sum(bursts) * parts.dram.timing.burst / numbers.pseudo_channels,
        "dram_busiest_channel": max(bursts) * parts.dram.timing.burst,
        "link_read": min(time_ps, counts["link.read_bytes"] * link_byte_ps),
        "link_write": min(time_ps, counts["link.write_bytes"] * link_write_byte_ps),
        "l2_slices": sectors * numbers.slice_cost / FINE / machine.l2.slices,
        "crossbar_reply": counts["l2.read_sectors"] * numbers.reply_cost / FINE / sms,
        "l1": (counts["line_accesses"] + counts["l1_conflict_cycles"]) * numbers.l1_line / sms,
        "issue_slots": slots / (sms * machine.sm.schedulers),
        "um_fault_handling": counts["um.fault_handling_busy_ps"],
    }
    return {f"utilization.{name}": time / time_ps for name, time in busy.items()}
