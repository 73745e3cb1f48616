"""Definitions of the labels of all screens, as `explain` prints them.

A label is the heading of a column, the name of a row or the title of a section. A number that is a counter of results
has its definition there; the label names the counters from which it is computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from buddysim.replay.schemes import shown_rows


@dataclass(frozen=True)
class Label:
    """The definition of one label.

    Attributes
    ----------
    name : text on the screen, without units
    screen : command that prints it
    text : one sentence that begins with a noun and stands alone
    counters : names of the counters from which the number is computed
    """

    name: str
    screen: str
    text: str
    counters: tuple[str, ...] = ()


_RUN: dict[str, tuple[str, tuple[str, ...]]] = {
    "SYNTHETIC SIZES": (
        "Warning that the trace has no data values for some entries, so that their sizes are sampled from a named "
        "distribution; ratios, times and speedups are ranges over its seeds.",
        ("sizes.synthetic_fraction", "compression.synthetic_seeds"),
    ),
    "DERIVED ACCESSES": (
        "Warning that the captured program has no warps, so that which bytes are read when is assumed, and times and "
        "speedups are not shown.",
        (),
    ),
    "PARTIAL TRACE": ("Warning that the trace file is incomplete, so that only a part of the run was replayed.", ()),
    "speedup over ideal": (
        "Time of the baseline `ideal` divided by the time of the scheme; a slowdown is below 1.",
        ("slowdown.ratio",),
    ),
    "sensitivity range": (
        "Range of the speedup, or lowest and highest compression ratio, of further runs in which latencies and "
        "compute gaps are up to 2.5 % longer or shorter; a speedup whose range contains 1 is no difference "
        "that the trace can tell.",
        ("slowdown.min", "slowdown.max", "sensitivity.compression_ratio"),
    ),
    "compute gaps x 0.5, x 2": (
        "Speedups over `ideal` with all compute gaps halved, and doubled; shown if the trace estimates compute gaps.",
        ("sensitivity.half_compute_gaps_time_ps", "sensitivity.double_compute_gaps_time_ps"),
    ),
    "simulated time": ("Time from the start of the first kernel to the end of the last.", ("time_ps",)),
    "core cycles": ("Simulated time in cycles of the machine's core clock.", ("cycles",)),
    "bottleneck": (
        "Resource with the highest utilization, if that is 60 % or more; `none > 60 %` otherwise.",
        ("utilization.dram_channels", "utilization.issue_slots"),
    ),
    "next": ("Resource with the highest utilization among those that `bottleneck` does not name.", ()),
    "DRAM": ("Data buses of device memory, all channels together.", ("utilization.dram_channels",)),
    "channel": (
        "Busiest channel of device memory, named where it is more than 10 % busier than the mean.",
        ("utilization.dram_busiest_channel",),
    ),
    "L1": ("Ports of the L1 caches.", ("utilization.l1",)),
    "L2": ("Ports of the L2 slices.", ("utilization.l2_slices",)),
    "issue": ("Issue slots of the SMs' schedulers.", ("utilization.issue_slots",)),
    "replies": ("Reply ports of the crossbar.", ("utilization.crossbar_reply",)),
    "requests": ("Request ports of the crossbar.", ()),
    "memory footprint": ("Section with the memory that the allocations take under each scheme.", ()),
    "compression ratio": (
        "Bytes allocated divided by the bytes of device memory that they take, without metadata.",
        ("compression.ratio",),
    ),
    "peak, mean over time": (
        "Highest and time-averaged compression ratio, where allocations come and go during the run.",
        ("compression.max_ratio", "compression.mean_ratio"),
    ),
    "device memory": (
        "Bytes of device memory that the allocations take, metadata included; under Unified Memory the resident pages.",
        ("footprint.device_bytes", "footprint.metadata_bytes", "um.resident_bytes"),
    ),
    "host memory": ("Bytes of allocations that lie in host memory.", ("footprint.host_bytes",)),
    "DRAM traffic": ("Section with the bytes on the buses of device memory, by cause.", ("device.bus_bytes",)),
    "demand": ("Bytes read because requests miss in the L2.", ("device.demand_bytes", "link.demand_bytes")),
    "over-fetch": (
        "Bytes read that no request needs, because memory moves whole compressed entries.",
        ("device.overfetch_bytes", "link.overfetch_bytes"),
    ),
    "read-modify-write": (
        "Bytes read to complete partially written entries before they are compressed.",
        ("device.read_modify_write_bytes", "link.read_modify_write_bytes"),
    ),
    "write-back": ("Bytes of dirty sectors that the L2 evicts.", ("device.writeback_bytes", "link.writeback_bytes")),
    "total": ("Sum of the section.", ("device.bus_bytes",)),
    "link traffic": ("Bytes over the host link.", ("link.read_bytes", "link.write_bytes")),
    "link traffic, read + write": (
        "Bytes over the host link to the GPU, and from the GPU, packet headers included.",
        ("link.read_bytes", "link.write_bytes"),
    ),
    "packet headers": ("Bytes over the host link that are not payload.", ()),
    "total read": ("Bytes over the host link to the GPU.", ("link.read_bytes",)),
    "total write": ("Bytes over the host link from the GPU.", ("link.write_bytes",)),
    "hit rates (MSHR merges apart)": (
        "Section with hits, then MSHR merges, each as a fraction of all lookups.",
        (),
    ),
    "L1 sectors": (
        "Sector lookups in the L1s that hit, and those that merge with a miss in flight.",
        ("l1.sector_hits", "l1.sector_mshr_merges", "l1.sector_accesses"),
    ),
    "L2 sectors": (
        "Sector lookups in the L2 that hit, and those that merge with a miss in flight.",
        ("l2.sector_hits", "l2.sector_mshr_merges", "l2.sector_accesses"),
    ),
    "waiting time (half of the requests, 99 %)": (
        "Section with the times that half of the requests, and 99 % of them, wait less than; shown with --queueing.",
        (),
    ),
    "L1 port": ("Waiting time of loads for the port of their L1.", ("queueing.l1_port_histogram",)),
    "L1 MSHR": ("Waiting time of loads for an MSHR of their L1.", ("queueing.l1_mshr_histogram",)),
    "L1 store buffer": ("Waiting time of stores for the store buffer of their SM.", ("queueing.l1_store_histogram",)),
    "crossbar request": ("Waiting time of requests for the crossbar.", ("queueing.request_port_histogram",)),
    "crossbar reply": ("Waiting time of replies for the crossbar.", ("queueing.reply_port_histogram",)),
    "L2 slice port": ("Waiting time of requests for the port of their slice.", ("queueing.slice_port_histogram",)),
    "L2 MSHR": ("Waiting time of misses for an MSHR of their slice.", ("queueing.l2_mshr_histogram",)),
    "compressor": ("Waiting time of entries for a compressor or decompressor.", ("queueing.compressor_histogram",)),
    "DRAM read": ("Waiting time of reads for bank, row and bus.", ("queueing.dram_read_histogram",)),
    "DRAM write": ("Waiting time of writes for space in the write queue.", ("queueing.dram_write_histogram",)),
    "link read": ("Host link to the GPU: its utilization, or the waiting time for it.", ("utilization.link_read",)),
    "link write": ("Host link from the GPU: its utilization, or the waiting time for it.", ("utilization.link_write",)),
    "allocation": ("Name of an allocation of the trace.", ()),
    "size": ("Bytes of the allocation or file.", ("per_allocation.bytes",)),
    "memory": ("Memory that the program allocated it in, device or host.", ("per_allocation.space",)),
    "fills": ("Fills of the L2 from this allocation.", ("per_allocation.fills",)),
    "write-backs": ("Write-backs of the L2 to this allocation.", ("per_allocation.writebacks",)),
    "scheme": ("Name of a memory configuration; `list replay-scheme` and `list training-scheme` describe each.", ()),
}

_TRAIN: dict[str, tuple[str, tuple[str, ...]]] = {
    "fits": ("Whether the iteration fits in the GPU's memory; `-` for unlimited memory.", ("fits",)),
    "performance vs oracle": (
        "Time on a GPU with unlimited memory divided by the time under the scheme.",
        ("performance_vs_oracle",),
    ),
    "time": (
        "Time of one training iteration; in parentheses what it would be with enough memory.",
        ("time_ms",),
    ),
    "stalls": ("Time for which computation waits for copies.", ("stall_ms",)),
    "peak": ("Highest number of bytes allocated in GPU memory at once.", ("memory.peak_bytes",)),
    "offload": ("Bytes of feature maps that are offloaded to the host.", ("offload.bytes",)),
    "pinned": ("Highest number of bytes of pinned host memory at once.", ("host.peak_pinned_bytes",)),
    "codec": ("Time of the kernels that encode and decode feature maps.", ("encode_ms", "decode_ms")),
    "Gist MFR": (
        "Memory footprint ratio of the Gist paper: footprint of the baseline divided by that of the scheme.",
        ("memory.footprint_ratio",),
    ),
    "link (compressed)": ("Bytes over the host link after compression, both directions.", ("link.bytes",)),
    "batch samples": ("Largest batch that fits; shown with --max-batch.", ("provenance.batch",)),
    "GPU memory at the peak": (
        "Kinds of what the GPU holds at the peak, at most twelve rows that add up to `all tensors` or `in use`; of a "
        "model's configuration.",
        ("memory.by_kind", "memory.peak_bytes"),
    ),
    "weights": ("Weights and buffers of the model.", ("memory.weights_bytes",)),
    "master weights": ("Copies of the weights in single precision, next to narrower ones.", ("memory.by_kind",)),
    "weight gradients": ("Gradients of the weights.", ("memory.weight_gradient_bytes",)),
    "optimizer state": ("State of the optimizer.", ("memory.optimizer_state_bytes",)),
    "gathered shards": ("Weights of other GPUs, gathered for the layers that run.", ("memory.by_kind",)),
    "gradient buckets": ("Buffers in which gradients are reduced over GPUs.", ("memory.by_kind",)),
    "inputs": ("Tensors of the batch.", ("memory.by_kind",)),
    "saved activations": (
        "Tensors that autograd saves for the backward pass, without logits and loss.",
        ("memory.feature_map_bytes",),
    ),
    "saved by": (
        "Tensors that autograd saves for the backward pass, by the module that saves them first, in all blocks.",
        ("memory.saved_by_layer_kind",),
    ),
    "logits and loss": ("Tensors that the output head and the loss allocate.", ("memory.by_kind",)),
    "gradient maps": ("Gradients of feature maps.", ("memory.gradient_map_bytes",)),
    "temporaries": ("Tensors that live shortly, gradients of activations too.", ("memory.by_kind",)),
    "workspace": ("Workspace of kernels.", ("memory.workspace_bytes",)),
    "others": ("Sum of the smallest kinds.", ("memory.by_kind",)),
    "all tensors": ("Sum of the rows above: the most bytes of tensors that live at once.", ("memory.peak_bytes",)),
    "cuBLAS workspaces": ("Workspaces of matrix products, within the allocator.", ("memory.by_kind",)),
    "fragmentation": (
        "Bytes that the allocator reserves in addition, rounding included.",
        ("memory.peak_reserved_bytes",),
    ),
    "CUDA context": ("Bytes outside of the allocator.", ("memory.by_kind",)),
    "in use": ("Sum of the rows above: what the GPU holds.", ("memory.by_kind",)),
    "peak reached at": (
        "Instant of the peak, and the pass, module and operator that reach it.",
        ("memory.peak_start_ms", "memory.peak_phase", "memory.peak_module", "memory.peak_operation"),
    ),
    "out of memory": (
        "Section with the first request that fails: its layer and pass, bytes requested, largest free block, and by "
        "how much the peak exceeds the memory.",
        ("oom.message", "oom.shortfall_bytes", "oom.peak_excess_bytes"),
    ),
    "out of memory with one sample more": (
        "Section with the request that fails at a batch of one sample more than the largest that fits.",
        ("oom.message",),
    ),
    "limits of the schemes that fit": (
        "Section with the fraction of each memory that a scheme uses at its peak.",
        ("memory.peak_bytes", "memory.capacity_bytes", "host.peak_pinned_bytes", "host.pinned_capacity_bytes"),
    ),
    "decisions": ("Section with what each scheme chose, for example the layers that it offloads.", ()),
    "accuracy": ("Change of the accuracy after training with a lossy scheme, in percentage points.", ()),
    "layer": ("Name of a layer of the network.", ()),
    "forward": ("Stall time of the layer in the forward pass.", ("per_layer.forward_stall_ms",)),
    "backward": ("Stall time of the layer in the backward pass.", ("per_layer.backward_stall_ms",)),
    "of the iteration": ("Fraction of the iteration for which the layer stalls.", ()),
    "offloaded": ("Bytes of the layer's feature maps that go to the host.", ("per_layer.offload_bytes",)),
    "prefetched": ("Bytes of the layer's feature maps that come back.", ("per_layer.prefetch_bytes",)),
    "removed by link": (
        "Slowest of the machine's faster links under which less than 5 % of the layer's stall remains.",
        (),
    ),
}

_PROFILE: dict[str, tuple[str, tuple[str, ...]]] = {
    "target ratios": (
        "Compression ratio with the chosen target of every allocation, and the fraction of entries that overflow it.",
        (),
    ),
    "expected buddy-access fraction": (
        "Mean fraction of entries that overflow their target: an estimate without simulation; `run` counts accesses.",
        (),
    ),
    "upper bound with a size per entry": (
        "Compression ratio if every entry took its own size class, without targets and overflow.",
        (),
    ),
    "% of entries by size in sectors": (
        "Percentage of entries that compress to 0 B, to 8 B, and to 1, 2, 3 or 4 sectors, the mean over snapshots.",
        (),
    ),
    "overflow, % mean": ("Percentage of entries that overflow their target, the mean over the snapshots.", ()),
    "overflow, % worst": ("Percentage of entries that overflow their target in the worst snapshot.", ()),
    "snapshots": ("Number of snapshots that have sizes of the allocation.", ()),
}

_OTHERS: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "networks": {
        "network": ("Name of a network; `networks show NAME` describes its layers.", ()),
        "input": ("Shape of one sample.", ()),
        "layers": ("Number of layers, the input apart.", ()),
        "CONV layers": ("Number of convolution layers.", ()),
        "parameters": ("Number of trainable parameters.", ()),
        "FLOPs per sample": ("Floating-point operations of the forward pass for one sample.", ()),
        "description": ("Phrase that describes the row's name.", ()),
        "network-wide allocation": (
            "Memory of a training that allocates every tensor for the whole iteration, without workspace.",
            (),
        ),
        "bytes": ("Size in bytes.", ()),
        "kind": ("Kind of layer.", ()),
        "reads layers": ("Numbers of the layers whose output it reads; empty: the layer before it.", ()),
        "refs": ("Number of layers that read its output.", ()),
        "output values": ("Shape of its output for one sample.", ()),
        "output": ("Bytes of its output for the batch.", ()),
        "forward FLOPs": ("Floating-point operations of its forward pass for the batch.", ()),
        "backward reads": ("Tensors that its backward step reads: X its input, Y its output.", ()),
    },
    "machines": {
        "machine": ("Name of a machine; `machines NAME` shows every key with its source.", ()),
        "SMs": ("Number of streaming multiprocessors.", ()),
        "core clock": ("Clock of the SMs.", ()),
        "L1 per SM": ("Size of the L1 cache of each SM.", ()),
        "device memory, GB/s": ("Peak bandwidth of device memory.", ()),
        "link, each way": ("Bandwidth of the host link in each direction.", ()),
        "single precision": ("Peak rate of single-precision operations.", ()),
        "link": ("Name of the host link that training uses.", ()),
        "times from": (
            "Where times come from: a library's layers, timings of the GPU's operators, or another GPU.",
            (),
        ),
        "key": ("Dotted name of a figure of the machine, as --set takes it.", ()),
        "value": ("Value of the key.", ()),
        "converted": ("Value in nanoseconds or GB/s, where the key has cycles.", ()),
        "source": ("Document that the figure comes from.", ()),
    },
    "info": {
        "name": ("Name of the allocation.", ()),
        "base": ("First address of the allocation.", ()),
        "entries": ("Memory-entries of 128 B of the allocation.", ()),
        "space": ("Memory in which the allocation lies: device or host.", ()),
        "events": ("Events at which the allocation begins and ends.", ()),
        "kernel": ("Name of the kernel.", ()),
        "launch": ("Launch index of the kernel in the program.", ("per_kernel.launch_index",)),
        "grid": ("Thread blocks of the launch in x, y and z.", ()),
        "block": ("Threads of a block in x, y and z.", ()),
        "registers": ("Registers of a thread.", ()),
        "shared memory": ("Shared memory of a block.", ()),
        "stream": ("CUDA stream of the launch.", ()),
        "blocks": ("Thread blocks that the trace holds.", ()),
        "chunks": ("Compressed sections of the trace file.", ()),
        "warp instructions": ("Instructions that warps issue, compute gaps included.", ("warp_instructions",)),
        "memory instructions": ("Loads, stores and atomics that warps issue.", ("memory_instructions",)),
        "lines": ("Lines of 128 B that memory instructions access.", ("line_accesses",)),
        "event": ("Kind of event: kernel launch, memcpy or memset.", ()),
        "address": ("Address that a memcpy or memset writes or reads.", ()),
        "details": ("Direction and source of a memcpy, value of a memset, or name of a kernel.", ()),
        "data values of": ("Allocation whose bytes the snapshot holds.", ()),
        "sampled": ("Fraction of the allocation's pages that the snapshot holds.", ()),
        "pages": ("Pages of the allocation that the snapshot holds.", ()),
        "launches before": ("Number of launches that had ended when the snapshot was taken.", ()),
        "label": ("Name of the snapshot.", ()),
        "snapshot": ("Number of the snapshot.", ()),
        "by": ("Compressor that gave the sizes.", ()),
        "% of entries by size class": ("Percentage of entries that compress to each size class.", ()),
        "unknown": ("Fraction of entries without a size.", ()),
    },
    "traces": {
        "trace": ("Name of a trace in the repository.", ()),
        "file": ("Path of the trace file, if it is on this computer.", ()),
    },
    "validate": {
        "quantity": ("Name of the compared quantity.", ()),
        "reference": ("Value measured on hardware, reported by a paper, or simulated by another simulator.", ()),
        "simulated": ("Value that buddysim gives.", ()),
        "error": ("Difference of the simulated value from the reference, in per cent of the reference.", ()),
        "tolerance": ("Largest error that passes.", ()),
        "status": ("Outcome of the comparison: pass, fail, fitted, or no tolerance.", ()),
    },
    "results": {
        "slowdown_vs_ideal": (
            "Time of the point divided by the time of the same point under `ideal`; above 1 is slower.",
            ("time_ps",),
        ),
        "key": ("Key of the result in a store: a hash of everything that determines it.", ()),
        "engine": ("Engine that simulated the point: `replay` or `training`.", ()),
        "model_version": ("Version of the engine's model.", ()),
        "machine_checksum": ("SHA-256 over every figure of the machine that a simulation depends on.", ()),
        "content": ("SHA-256 of the trace file, or of the network's layers and their names.", ()),
        "seconds": ("Wall-clock time of the simulation, in seconds.", ()),
        "peak_rss_bytes": ("Peak resident memory of the process during the simulation, in bytes.", ()),
        "sources": ("Checksum of the engine's sources that made the result.", ()),
        "settings_hash": ("Hash of the settings as the user wrote them, files by their paths.", ()),
        "baseline": ("Key of the result that `slowdown_vs_ideal` is relative to.", ()),
        "sizes": ("Origin of the entry sizes: `captured`, `synthetic` or `mixed`.", ("sizes.synthetic_fraction",)),
    },
    "diff": {
        "A": ("Value in the first result or sweep.", ()),
        "B": ("Value in the second result or sweep.", ()),
        "B/A": ("Quotient of the two values.", ()),
        "counter": ("Name of a counter of results.", ()),
        "pairs": ("Number of pairs of points that are compared.", ()),
    },
    "plot": {"figure": ("Name of a figure of `plot`.", ())},
}

_UNIT = re.compile(r",? (ms|us|GiB|MiB|KiB|B|%|samples)\b(?! of)|,? GiB(?= \()| \(seed \d+\)")


def labels() -> Iterator[Label]:
    """Yield the labels of all screens."""
    sections = {"run": _RUN, "train": _TRAIN, "profile": _PROFILE, **_OTHERS}
    for screen, rows in sections.items():
        for name, (text, counters) in rows.items():
            yield Label(name, screen, text, counters)
    for row in shown_rows():
        yield Label(row.label, "run", row.text, row.counters)


def find_labels(text: str) -> list[Label]:
    """Return the labels of a name, whatever its case, unit and line breaks; several screens may have it."""
    requested = _normalize(text)
    return [label for label in labels() if _normalize(label.name) == requested]


def _normalize(text: str) -> str:
    words = " ".join(text.split())
    return _UNIT.sub("", f" {words}").strip().casefold().rstrip(":")
