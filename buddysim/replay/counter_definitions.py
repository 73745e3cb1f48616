"""Definitions of all counters of a replay: `explain`, `results` and docs/reference/replay-counters.md show them.

Parts of the machine declare counters in their folders (`counters`), schemes in their files (``COUNTERS``); those of
whole runs are here. Tests compare the keys of real results with these names, and check the laws.
"""

from __future__ import annotations

from collections.abc import Mapping

from buddysim.base.counter import define, unit_and_text
from buddysim.replay.component.counted import Counted
from buddysim.replay.compressed import counters as compressed
from buddysim.replay.crossbar import counters as crossbar
from buddysim.replay.dram import counters as dram
from buddysim.replay.l1 import counters as l1
from buddysim.replay.l2 import counters as l2
from buddysim.replay.link import counters as link
from buddysim.replay.sm import counters as sm

_FOOTPRINT = {
    "compression.ratio": "ratio: Peak of the bytes allocated divided by the peak of the device memory that they "
    "occupy, without metadata.",
    "compression.max_ratio": "ratio: Compression ratio at the event where it is largest, without metadata.",
    "compression.mean_ratio": "ratio: Mean of the bytes allocated divided by the mean of the device memory occupied, "
    "without metadata.",
    "compression.synthetic_min_ratio": "ratio: Lowest compression ratio over seeds of synthetic sizes; null for "
    "captured sizes.",
    "compression.synthetic_max_ratio": "ratio: Highest compression ratio over seeds of synthetic sizes; null for "
    "captured sizes.",
    "compression.synthetic_seeds": "seeds: Number of seeds behind the range of the compression ratio; null for "
    "captured sizes.",
    "footprint.allocated_bytes": "B: Peak of the bytes that the program allocates in device memory, in full entries.",
    "footprint.device_bytes": "B: Device memory that allocations occupy under their targets, without metadata, when "
    "data and metadata peak.",
    "footprint.used_device_bytes": "B: Device memory that the scheme uses, metadata included; under Unified Memory at "
    "most the memory for pages.",
    "footprint.host_bytes": "B: Peak of the bytes allocated in host memory, by the program or by the scheme.",
    "footprint.mean_allocated_bytes": "B: Mean over simulated time of the bytes allocated in device memory.",
    "footprint.mean_device_bytes": "B: Mean over simulated time of the device memory occupied, without metadata.",
    "footprint.mean_host_bytes": "B: Mean over simulated time of the bytes allocated in host memory.",
    "sizes.synthetic_fraction": "fraction: Fraction of device entries with synthetic sizes, as the trace has no data "
    "values for them.",
    "sizes.extrapolated_fraction": "fraction: Fraction of device entries whose first size is extrapolated from the "
    "nearest sampled page.",
    "sizes.extrapolated_mean_fraction": "fraction: Mean fraction of extrapolated sizes over all allocations and "
    "snapshots that the run used, each once.",
}

_SENSITIVITY = {
    "sensitivity.time_ps": "ps: Simulated times of the runs with small changes, in the order of "
    "`provenance.sensitivity`.",
    "sensitivity.compression_ratio": "ratio: Compression ratios of the runs with small changes, in the same order.",
    "sensitivity.half_compute_gaps_time_ps": "ps: Simulated time with compute gaps halved; null if the trace has its "
    "compute gaps.",
    "sensitivity.double_compute_gaps_time_ps": "ps: Simulated time with compute gaps doubled; null if the trace has "
    "its compute gaps.",
    "slowdown.ratio": "ratio: Simulated time divided by the baseline's, above 1 is slower; null without a baseline.",
    "slowdown.min": "ratio: Lower end of the range of slowdowns with small changes (95 %); null without such runs.",
    "slowdown.max": "ratio: Upper end of the range of slowdowns with small changes (95 %); null without such runs.",
}

_PER_KERNEL = {
    "per_kernel.index": "number: Index of the kernel in the trace.",
    "per_kernel.name": "text: Name of the kernel.",
    "per_kernel.launch_index": "number: Number of launches that the program made before this one.",
    "per_kernel.launch_ps": "ps: Time at which the kernel was launched.",
    "per_kernel.time_ps": "ps: Time from the kernel's launch to its end, launch latency included.",
    "per_kernel.cycles": "core cycles: Time from the kernel's launch to its end in whole core cycles.",
    "per_kernel.warp_instructions": "instructions: Warp instructions issued while the kernel ran, by overlapping "
    "kernels too.",
    "per_kernel.memory_instructions": "instructions: Memory instructions issued while the kernel ran, by overlapping "
    "kernels too.",
    "per_kernel.device_read_sectors": "sectors: Data sectors read from device memory while the kernel ran.",
    "per_kernel.device_write_sectors": "sectors: Data sectors written to device memory while the kernel ran.",
    "per_kernel.link_read_bytes": "B: Bytes that the link carried to the GPU while the kernel ran.",
    "per_kernel.link_write_bytes": "B: Bytes that the link carried from the GPU while the kernel ran.",
}

_PER_ALLOCATION = {
    "per_allocation.index": "number: Index of the allocation in the trace.",
    "per_allocation.name": "text: Name of the allocation.",
    "per_allocation.bytes": "B: Size of the allocation.",
    "per_allocation.space": "text: Memory that the program allocated it in, `device` or `host`.",
    "per_allocation.target": "text: Target ratio of the allocation; `1x` without targets.",
    "per_allocation.fills": "fills: Fills of the allocation's entries.",
    "per_allocation.writebacks": "write-backs: Write-backs of the allocation's entries.",
}

_COPIES = {
    "copies.moved": "copies: Memcpys and memsets that took time, as `copies.timed` of the machine chooses them.",
    "copies.bytes": "B: Bytes of those memcpys and memsets.",
    "copies.busy_ps": "ps: Time that copy engines moved bytes, without latencies, all engines together.",
}

_SIMULATOR = {
    "trace.skipped_copies": "events: Memcpy and memset events outside every live allocation, which have no effect.",
    "horizon.pushed": "requests: Requests too far ahead for a port or reservation table to record them, so that no "
    "later one waits for them.",
}

_PROVENANCE = {
    "provenance.buddysim": "Version of buddysim.",
    "provenance.python": "Version of Python.",
    "provenance.numpy": "Version of NumPy.",
    "provenance.scheme": "Name of the replay scheme.",
    "provenance.machine": "Name of the machine.",
    "provenance.machine_checksum": "SHA-256 over every machine key that the run depends on.",
    "provenance.trace": "Name of the trace file.",
    "provenance.trace_checksum": "SHA-256 over the checksums of the trace file's sections.",
    "provenance.partial": "True if the end of the trace file is missing and only its beginning was replayed.",
    "provenance.partial_contents": "Contents of a partial trace file; null if the file is complete.",
    "provenance.compressor": "Compressor that determines the entries' sizes.",
    "provenance.seed": "Seed of the synthetic sizes.",
    "provenance.size_distribution": "Distribution of the synthetic sizes.",
    "provenance.threshold": "Buddy Threshold, without effect if targets are given.",
    "provenance.targets": "Target ratio by allocation, as a targets file names them.",
    "provenance.targets_source": "Source of the targets: kind (`profile`, `file`, `uniform`, `given` or `none`), "
    "file, checksum and options.",
    "provenance.kernels": "Indexes of the kernels that ran.",
    "provenance.compute_gap_scale": "Factor on the trace's compute gaps.",
    "provenance.exact_order": "True if lines reached L1 and L2 in the order of their arrival (`--exact-order`).",
    "provenance.sensitivity": "Changed runs: what was requested, the kinds of changes, and the settings of each run.",
    "provenance.baseline": "Scheme and machine that slowdowns are normalized to; null without a baseline.",
    "provenance.equal_capacity_bytes": "Device memory given to every scheme by `--equal-capacity`; else null.",
    "provenance.assumptions": "Assumptions by subject: `trace.*` of the trace, `sizes.*` of entry sizes, others of "
    "the model.",
}

#: Of whole runs: heading -> name -> "unit: definition"; provenance has no units.
_OF_RUNS = {
    "Footprint and sizes": _FOOTPRINT,
    "Sensitivity": _SENSITIVITY,
    "Kernels": _PER_KERNEL,
    "Allocations": _PER_ALLOCATION,
    "Copies": _COPIES,
    "Simulator": _SIMULATOR,
    "Provenance": {name: f": {text}" for name, text in _PROVENANCE.items()},
}

#: Headings in their order.
_HEADINGS = (
    "Time and instructions",
    "L1",
    "L2",
    "Device memory",
    "Link",
    "Footprint and sizes",
    "Latency",
    "Queueing",
    "Utilization",
    "Sensitivity",
    "Kernels",
    "Allocations",
    "Copies",
    "Simulator",
    "Provenance",
)

#: The modules in which parts of the machine declare their counters, and laws between them.
PARTS = (sm, l1, crossbar, l2, compressed, dram, link)

#: The counters of the parts of the machine, by name.
OF_PARTS: Mapping[str, Counted] = {
    name: counter for heading in _HEADINGS for part in PARTS for name, counter in part.COUNTERS.get(heading, {}).items()
}

#: The modules of those that parts declare, by name.
SOURCES: Mapping[str, str] = {
    name: part.__name__ for part in PARTS for counters in part.COUNTERS.values() for name in counters
}

#: Equations between counters that hold in every result, whatever its scheme.
LAWS = tuple(law for part in PARTS for law in getattr(part, "LAWS", ()))


def _section(heading: str) -> dict[str, tuple[str, str]]:
    """Unit and definition of each counter under a heading."""
    definitions = {name: one.definition for part in PARTS for name, one in part.COUNTERS.get(heading, {}).items()}
    definitions |= _OF_RUNS.get(heading, {})
    return {name: unit_and_text(definition) for name, definition in definitions.items()}


#: The counters of every replay, by name; the counters of schemes stand in their files.
COUNTERS = define({heading: _section(heading) for heading in _HEADINGS}, LAWS)
