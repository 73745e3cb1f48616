"""Definitions of the counters of a replay: `explain`, `results` and docs/reference/replay-counters.md show them.

A scheme defines its own counters in its file (``COUNTERS``). Tests compare the keys of real results with these names,
and check the laws.
"""

from __future__ import annotations

from typing import Final

from buddysim.base.counter import define

_SECTORS: Final = "sectors"
_BYTES: Final = "B"
_FRACTION: Final = "fraction"

_TIME = {
    "time_ps": (
        "ps",
        "Simulated time from the start of the first kernel to the end of the last, with launch latencies.",
    ),
    "cycles": ("core cycles", "Simulated time in whole cycles of the machine's core clock."),
    "warp_instructions": (
        "instructions",
        "Instructions that warps issued, memory instructions and compute gaps alike.",
    ),
    "memory_instructions": ("instructions", "Loads, stores and atomics that warps issued; barriers do not count."),
    "line_accesses": ("lines", "Lines that loads, stores and atomics access, each once per instruction."),
    "load_sectors": (_SECTORS, "Sectors that loads and atomics request."),
    "store_sectors": (_SECTORS, "Sectors that stores write."),
}

_L1 = {
    "l1.sector_accesses": (_SECTORS, "Sectors that loads look up in an L1; loads that bypass the L1 do not count."),
    "l1.sector_hits": (_SECTORS, "L1 sector lookups that hit a valid sector; MSHR merges do not count."),
    "l1.sector_mshr_merges": (_SECTORS, "L1 sector lookups that join a miss in flight and send no request."),
    "l1.sector_misses": (
        _SECTORS,
        "L1 sector lookups that neither hit nor join a miss in flight: the L1 requests them.",
    ),
    "l1.line_accesses": ("lines", "L1 line lookups, one for each line of a load."),
    "l1.line_hits": ("lines", "L1 line lookups that find the line's tag, whether or not the sectors are valid."),
}

_L2 = {
    "l2.sector_accesses": (_SECTORS, "Sectors that requests look up in the L2, reads and writes together."),
    "l2.sector_hits": (_SECTORS, "L2 sector lookups that hit, reads and writes together; MSHR merges do not count."),
    "l2.sector_mshr_merges": (_SECTORS, "L2 sectors read that join a miss in flight and cause no fill."),
    "l2.read_sectors": (_SECTORS, "L2 sectors that L1 misses, bypassing loads and atomics request."),
    "l2.read_sector_hits": (_SECTORS, "L2 sectors read that hit a valid sector; MSHR merges do not count."),
    "l2.write_sectors": (_SECTORS, "L2 sectors that stores write."),
    "l2.write_sector_hits": (_SECTORS, "L2 sectors written that were valid or had been written before."),
    "l2.line_accesses": ("lines", "L2 line lookups, one for each line of a request."),
    "l2.line_hits": ("lines", "L2 line lookups that find the line's tag, whether or not the sectors are valid."),
    "l2.read_sector_misses": (
        _SECTORS,
        "L2 sectors read that are neither valid nor in flight, so memory must supply them.",
    ),
    "l2.fill_sectors": (
        _SECTORS,
        "Sectors that fills make valid: the missing ones, and the rest of an entry fetched in full.",
    ),
    "l2.fills": ("fills", "Requests that miss sectors in the L2 and fetch them from memory."),
    "l2.writebacks": ("write-backs", "Lines that the L2 evicts with dirty sectors."),
    "l2.writeback_sectors": (_SECTORS, "Dirty sectors of the lines that the L2 evicts."),
    "l2.sectors_made_dirty": (_SECTORS, "Clean or absent sectors that a store or atomic makes dirty."),
    "l2.dirty_sectors_overwritten": (
        _SECTORS,
        "Dirty sectors dropped because a memcpy or memset overwrites them in memory.",
    ),
    "l2.dirty_sectors_freed": (_SECTORS, "Dirty sectors dropped because the program frees their allocation."),
    "l2.dirty_sectors_at_end": (_SECTORS, "Dirty sectors in the L2 after the last event of the trace."),
}

_CHANNEL_LIST = ": a list with a value for each pseudo-channel"
_DEVICE = {
    "device.read_bytes": (_BYTES, "Data that the L2 reads from device memory; metadata do not count."),
    "device.write_bytes": (_BYTES, "Data that the L2 writes to device memory; metadata do not count."),
    "device.demand_bytes": (_BYTES, "Device data that fills fetch, at most as many sectors as the request misses."),
    "device.overfetch_bytes": (
        _BYTES,
        "Device data that fills fetch beyond the missing sectors, misspeculated ones included.",
    ),
    "device.read_modify_write_bytes": (
        _BYTES,
        "Device data read for write-backs of entries that the L2 holds only in part.",
    ),
    "device.writeback_bytes": (
        _BYTES,
        "Device data that write-backs write: compressed entries in full, others their dirty sectors.",
    ),
    "device.bus_bytes": (_BYTES, "Bytes that the channels of device memory carry, in bursts of 32 B."),
    "device.channel_bytes": (_BYTES, f"Bytes that the channels carry{_CHANNEL_LIST}."),
    "device.channel_demand_bytes": (_BYTES, f"Demand data of fills{_CHANNEL_LIST}."),
    "device.channel_overfetch_bytes": (_BYTES, f"Over-fetched data of fills{_CHANNEL_LIST}."),
    "device.channel_read_modify_write_bytes": (_BYTES, f"Data read for partial write-backs{_CHANNEL_LIST}."),
    "device.channel_writeback_bytes": (_BYTES, f"Data of write-backs, queued writes included{_CHANNEL_LIST}."),
    "device.channel_metadata_read_bytes": (_BYTES, f"Metadata lines read{_CHANNEL_LIST}."),
    "device.channel_metadata_write_bytes": (_BYTES, f"Metadata lines written, queued writes included{_CHANNEL_LIST}."),
    "device.queued_write_bytes": (_BYTES, "Writes that the channels' write queues hold at the end of the run."),
    "device.row_hits": ("accesses", 'DRAM bank accesses that find their row open; 0 with `dram.model = "simple"`.'),
    "device.row_misses": ("accesses", 'DRAM bank accesses that open their row; 0 with `dram.model = "simple"`.'),
}

_LINK = {
    "link.read_bytes": (_BYTES, "Bytes that the link carries to the GPU, packet headers included."),
    "link.write_bytes": (_BYTES, "Bytes that the link carries from the GPU, packet headers included."),
    "link.demand_bytes": (_BYTES, "Payload of fills over the link, at most as many sectors as the request misses."),
    "link.overfetch_bytes": (_BYTES, "Payload of fills over the link beyond the missing sectors."),
    "link.read_modify_write_bytes": (
        _BYTES,
        "Buddy sectors read for write-backs of entries that the L2 holds only in part.",
    ),
    "link.writeback_bytes": (_BYTES, "Payload of write-backs to buddy or host memory."),
}

_FOOTPRINT = {
    "compression.ratio": (
        "ratio",
        "Peak of the bytes allocated divided by the peak of the device memory that they occupy, without metadata.",
    ),
    "compression.max_ratio": ("ratio", "Compression ratio at the event where it is largest, without metadata."),
    "compression.mean_ratio": (
        "ratio",
        "Mean of the bytes allocated divided by the mean of the device memory occupied, without metadata.",
    ),
    "compression.synthetic_min_ratio": (
        "ratio",
        "Lowest compression ratio over seeds of synthetic sizes; null for captured sizes.",
    ),
    "compression.synthetic_max_ratio": (
        "ratio",
        "Highest compression ratio over seeds of synthetic sizes; null for captured sizes.",
    ),
    "compression.synthetic_seeds": (
        "seeds",
        "Number of seeds behind the range of the compression ratio; null for captured sizes.",
    ),
    "footprint.allocated_bytes": (
        _BYTES,
        "Peak of the bytes that the program allocates in device memory, in full entries.",
    ),
    "footprint.device_bytes": (
        _BYTES,
        "Device memory that allocations occupy under their targets, without metadata, when data and metadata peak.",
    ),
    "footprint.used_device_bytes": (
        _BYTES,
        "Device memory that the scheme uses, metadata included; under Unified Memory at most the memory for pages.",
    ),
    "footprint.buddy_bytes": (_BYTES, "Peak of the buddy memory reserved, whether or not entries overflow into it."),
    "footprint.metadata_bytes": (
        _BYTES,
        "Metadata of compressed entries, half a byte each, at the time of `footprint.device_bytes`.",
    ),
    "footprint.host_bytes": (_BYTES, "Peak of the bytes allocated in host memory, by the program or by the scheme."),
    "footprint.mean_allocated_bytes": (_BYTES, "Mean over simulated time of the bytes allocated in device memory."),
    "footprint.mean_device_bytes": (
        _BYTES,
        "Mean over simulated time of the device memory occupied, without metadata.",
    ),
    "footprint.mean_buddy_bytes": (_BYTES, "Mean over simulated time of the buddy memory reserved."),
    "footprint.mean_metadata_bytes": (_BYTES, "Mean over simulated time of the metadata of compressed entries."),
    "footprint.mean_host_bytes": (_BYTES, "Mean over simulated time of the bytes allocated in host memory."),
    "sizes.synthetic_fraction": (
        _FRACTION,
        "Fraction of device entries with synthetic sizes, as the trace has no data values for them.",
    ),
    "sizes.extrapolated_fraction": (
        _FRACTION,
        "Fraction of device entries whose first size is extrapolated from the nearest sampled page.",
    ),
    "sizes.extrapolated_mean_fraction": (
        _FRACTION,
        "Mean fraction of extrapolated sizes over all allocations and snapshots that the run used, each once.",
    ),
}

_LATENCY = {
    "latency.l1_miss_mean_ps": (
        "ps",
        "Mean time from an L1 miss's request to its reply, queues included, rounded down.",
    ),
    "latency.l1_miss_histogram": ("loads", "Histogram of L1 miss times: element b counts 2^b to 2^(b+1) - 1 ps."),
    "latency.l2_miss_histogram": (
        "fills",
        "Histogram of the times of fills below the L2: element b counts 2^b to 2^(b+1) - 1 ps.",
    ),
}

_WAITS = " (with `--queueing`; element b counts 2^b to 2^(b+1) - 1 ps)"
_QUEUEING = {
    f"queueing.{name}_histogram": (unit, f"Histogram of the waits of {what}{_WAITS}.")
    for name, unit, what in (
        ("l1_port", "lines", "lines from their instruction's issue until their L1 accepts them"),
        ("l1_mshr", "lines", "load misses for an MSHR of their L1"),
        ("l1_store", "lines", "stores until their L1 has a free entry for stores in flight"),
        ("request_port", "requests", "requests and store data for their SM's crossbar port"),
        ("reply_port", "replies", "replies to loads for their SM's crossbar port"),
        ("slice_port", "requests", "requests for the port of their L2 slice"),
        ("l2_mshr", "fills", "fills for an MSHR of their L2 slice"),
        ("compressor", "entries", "entries for the compressor or decompressor of their slice"),
        ("metadata_port", "lookups", "metadata lookups for the port of their metadata cache slice"),
        ("dram_read", "accesses", "reads of device memory for bank, row, bus and refresh"),
        ("dram_write", "accesses", "writes until their channel's write queue accepts them"),
        ("link_read", "transfers", "transfers to the GPU for the link"),
        ("link_write", "transfers", "transfers from the GPU for the link"),
    )
}

_UTILIZATION = {
    f"utilization.{name}": (_FRACTION, f"Utilization of {what}, 0 to 1 of its peak over the simulated time.")
    for name, what in (
        ("dram_channels", "the data buses of device memory"),
        ("dram_busiest_channel", "the busiest pseudo-channel of device memory"),
        ("link_read", "the link to the GPU"),
        ("link_write", "the link from the GPU"),
        ("l2_slices", "the ports of the L2 slices"),
        ("crossbar_reply", "the SMs' reply ports at the crossbar"),
        ("l1", "the L1s, bank-conflict cycles included"),
        ("um_fault_handling", "the handling of Unified Memory fault batches"),
        ("issue_slots", "the schedulers' issue slots, those blocked by a busy execution unit included"),
    )
}

_SENSITIVITY = {
    "sensitivity.time_ps": (
        "ps",
        "Simulated times of the runs with small changes, in the order of `provenance.sensitivity`.",
    ),
    "sensitivity.compression_ratio": ("ratio", "Compression ratios of the runs with small changes, in the same order."),
    "sensitivity.half_compute_gaps_time_ps": (
        "ps",
        "Simulated time with compute gaps halved; null if the trace has its compute gaps.",
    ),
    "sensitivity.double_compute_gaps_time_ps": (
        "ps",
        "Simulated time with compute gaps doubled; null if the trace has its compute gaps.",
    ),
    "slowdown.ratio": (
        "ratio",
        "Simulated time divided by the baseline's, above 1 is slower; null without a baseline.",
    ),
    "slowdown.min": ("ratio", "Lower end of the range of slowdowns with small changes (95 %); null without such runs."),
    "slowdown.max": ("ratio", "Upper end of the range of slowdowns with small changes (95 %); null without such runs."),
}

_PER_KERNEL = {
    "per_kernel.index": ("number", "Index of the kernel in the trace."),
    "per_kernel.name": ("text", "Name of the kernel."),
    "per_kernel.launch_index": ("number", "Number of launches that the program made before this one."),
    "per_kernel.launch_ps": ("ps", "Time at which the kernel was launched."),
    "per_kernel.time_ps": ("ps", "Time from the kernel's launch to its end, launch latency included."),
    "per_kernel.cycles": ("core cycles", "Time from the kernel's launch to its end in whole core cycles."),
    "per_kernel.warp_instructions": (
        "instructions",
        "Warp instructions issued while the kernel ran, by overlapping kernels too.",
    ),
    "per_kernel.memory_instructions": (
        "instructions",
        "Memory instructions issued while the kernel ran, by overlapping kernels too.",
    ),
    "per_kernel.device_read_sectors": (_SECTORS, "Data sectors read from device memory while the kernel ran."),
    "per_kernel.device_write_sectors": (_SECTORS, "Data sectors written to device memory while the kernel ran."),
    "per_kernel.link_read_bytes": (_BYTES, "Bytes that the link carried to the GPU while the kernel ran."),
    "per_kernel.link_write_bytes": (_BYTES, "Bytes that the link carried from the GPU while the kernel ran."),
}

_PER_ALLOCATION = {
    "per_allocation.index": ("number", "Index of the allocation in the trace."),
    "per_allocation.name": ("text", "Name of the allocation."),
    "per_allocation.bytes": (_BYTES, "Size of the allocation."),
    "per_allocation.space": ("text", "Memory that the program allocated it in, `device` or `host`."),
    "per_allocation.target": ("text", "Target ratio of the allocation; `1x` without targets."),
    "per_allocation.fills": ("fills", "Fills of the allocation's entries."),
    "per_allocation.writebacks": ("write-backs", "Write-backs of the allocation's entries."),
    "per_allocation.buddy_accesses": (
        "accesses",
        "Fills and write-backs of the allocation's entries that access buddy memory.",
    ),
    "per_allocation.buddy_access_fraction": (
        _FRACTION,
        "Buddy accesses of the allocation divided by its fills and write-backs, 0 to 1; 0 if there are none.",
    ),
}

_SIMULATOR = {
    "speed.seconds": ("s", "Wall-clock time of the replay, without opening and profiling the trace."),
    "speed.memory_instructions_per_s": ("1/s", "Memory instructions simulated per second of wall-clock time."),
    "speed.line_accesses_per_s": ("1/s", "Line accesses simulated per second of wall-clock time."),
    "speed.peak_rss_bytes": (_BYTES, "Peak resident memory of the simulator's process up to the end of the run."),
    "trace.skipped_copies": ("events", "Memcpy and memset events outside every live allocation, which have no effect."),
    "horizon.pushed": (
        "requests",
        "Requests too far ahead for a port or reservation table to record them, so that no later one waits for them.",
    ),
}

_PROVENANCE = {
    "provenance.buddysim": ("", "Version of buddysim."),
    "provenance.python": ("", "Version of Python."),
    "provenance.numpy": ("", "Version of NumPy."),
    "provenance.scheme": ("", "Name of the replay scheme."),
    "provenance.machine": ("", "Name of the machine."),
    "provenance.machine_checksum": ("", "SHA-256 over every machine key that the run depends on."),
    "provenance.trace": ("", "Name of the trace file."),
    "provenance.trace_checksum": ("", "SHA-256 over the checksums of the trace file's sections."),
    "provenance.partial": (
        "",
        "True if the end of the trace file is missing and only its beginning was replayed.",
    ),
    "provenance.partial_contents": ("", "Contents of a partial trace file; null if the file is complete."),
    "provenance.compressor": ("", "Compressor that determines the entries' sizes."),
    "provenance.seed": ("", "Seed of the synthetic sizes."),
    "provenance.size_distribution": ("", "Distribution of the synthetic sizes."),
    "provenance.threshold": ("", "Buddy Threshold, without effect if targets are given."),
    "provenance.targets": ("", "Target ratio by allocation, as a targets file names them."),
    "provenance.targets_source": (
        "",
        "Source of the targets: kind (`profile`, `file`, `uniform`, `given` or `none`), file, checksum and options.",
    ),
    "provenance.kernels": ("", "Indexes of the kernels that ran."),
    "provenance.compute_gap_scale": ("", "Factor on the trace's compute gaps."),
    "provenance.sensitivity": (
        "",
        "Changed runs: what was requested, the kinds of changes, and the settings of each run.",
    ),
    "provenance.baseline": ("", "Scheme and machine that slowdowns are normalized to; null without a baseline."),
    "provenance.equal_capacity_bytes": ("", "Device memory given to every scheme by `--equal-capacity`; else null."),
    "provenance.assumptions": (
        "",
        "Assumptions by subject: `trace.*` of the trace, `sizes.*` of entry sizes, others of the model.",
    ),
}

LAWS = (
    "`l2.sector_accesses` = `l2.read_sectors` + `l2.write_sectors`",
    "`l2.sector_hits` = `l2.read_sector_hits` + `l2.write_sector_hits`",
    "`l1.sector_accesses` = `l1.sector_hits` + `l1.sector_mshr_merges` + `l1.sector_misses`",
    "`load_sectors` = `l1.sector_hits` + `l1.sector_mshr_merges` + `l2.read_sectors`",
    "`l2.read_sectors` = `l2.read_sector_hits` + `l2.sector_mshr_merges` + `l2.read_sector_misses`",
    "`l2.sectors_made_dirty` = `l2.writeback_sectors` + `l2.dirty_sectors_overwritten` + `l2.dirty_sectors_freed`"
    " + `l2.dirty_sectors_at_end`",
    "`device.read_bytes` = `device.demand_bytes` + `device.overfetch_bytes` + `device.read_modify_write_bytes`",
    "`device.write_bytes` = `device.writeback_bytes`",
    "`device.read_bytes` + `device.write_bytes` + `device.metadata_bytes` = `device.bus_bytes`"
    " + `device.queued_write_bytes`",
    "`speed.memory_instructions_per_s` = `memory_instructions` / `speed.seconds`",
    "`speed.line_accesses_per_s` = `line_accesses` / `speed.seconds`",
)

#: The counters of every replay, by name; the counters of schemes stand in their files.
COUNTERS = define(
    {
        "Time and instructions": _TIME,
        "L1": _L1,
        "L2": _L2,
        "Device memory": _DEVICE,
        "Link": _LINK,
        "Footprint and sizes": _FOOTPRINT,
        "Latency": _LATENCY,
        "Queueing": _QUEUEING,
        "Utilization": _UTILIZATION,
        "Sensitivity": _SENSITIVITY,
        "Kernels": _PER_KERNEL,
        "Allocations": _PER_ALLOCATION,
        "Simulator": _SIMULATOR,
        "Provenance": _PROVENANCE,
    },
    LAWS,
)
