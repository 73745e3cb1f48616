"""The description of a trace file as plain data: everything but operations and values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from buddysim.compress import UNKNOWN_CLASS
from buddysim.trace.data_values import Contents, SizeMap
from buddysim.trace.format import N_CLASSES
from buddysim.trace.model import Event, KernelLaunch
from buddysim.trace.reader import Kernel, Trace


def describe(trace: Trace) -> dict[str, Any]:
    """A dictionary of plain values, ready for JSON. Decodes the size maps, nothing else."""
    return {
        "path": str(trace.path),
        "bytes": trace.file.bytes,
        "format_version": trace.format_version,
        "fingerprint": trace.fingerprint,
        "interrupted": trace.interrupted,
        "provenance": asdict(trace.provenance),
        "totals": _totals(trace),
        "allocations": [{**asdict(allocation), "entries": allocation.entries} for allocation in trace.allocations],
        "kernels": [_kernel(kernel) for kernel in trace.kernels],
        "events": [_event(event) for event in trace.events],
        "snapshots": [
            {
                "index": snapshot.index,
                "launch_index": snapshot.launch_index,
                "label": snapshot.label,
                "contents": [_contents(contents) for contents in snapshot.contents],
            }
            for snapshot in trace.snapshots
        ],
        "size_maps": [_size_map(size_map) for size_map in trace.size_maps],
    }


def _totals(trace: Trace) -> dict[str, int]:
    kernels = trace.kernels
    return {
        "allocated_bytes": sum(allocation.bytes for allocation in trace.allocations),
        "warp_instructions": sum(kernel.warp_instructions for kernel in kernels),
        "memory_instructions": sum(kernel.memory_instructions for kernel in kernels),
        "line_accesses": sum(kernel.line_accesses for kernel in kernels),
        "blocks": sum(kernel.n_blocks for kernel in kernels),
        "chunks": sum(len(kernel.chunks) for kernel in kernels),
        "chunk_bytes": sum(ref.encoded_bytes for kernel in kernels for ref in kernel.chunks),
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "index": kernel.index,
        "name": kernel.name,
        "launch_index": kernel.launch_index,
        "grid": list(kernel.grid),
        "block": list(kernel.block),
        "registers": kernel.registers,
        "code_bytes": kernel.code_bytes,
        "shared_memory_bytes": kernel.shared_memory_bytes,
        "stream": kernel.stream,
        "event": kernel.event,
        "complete": kernel.complete,
        "warp_instructions": kernel.warp_instructions,
        "memory_instructions": kernel.memory_instructions,
        "line_accesses": kernel.line_accesses,
        "n_blocks": kernel.n_blocks,
        "n_chunks": len(kernel.chunks),
        "chunk_bytes": sum(ref.encoded_bytes for ref in kernel.chunks),
    }


def _event(event: Event) -> dict[str, Any]:
    kind = "kernel" if isinstance(event, KernelLaunch) else type(event).__name__.lower()
    fields = asdict(event)
    if kind == "memcpy":
        fields["direction"] = fields.pop("kind")
    return {"event": kind, **fields}


def _contents(contents: Contents) -> dict[str, Any]:
    return {
        "allocation": contents.allocation,
        "page_bytes": contents.page_bytes,
        "whole": contents.whole,
        "pages": contents.n_pages,
        "sampled_fraction": contents.sampled_fraction,
    }


def _size_map(size_map: SizeMap) -> dict[str, Any]:
    histogram = np.zeros(16, np.int64)
    for _, classes in size_map.blocks():
        histogram += np.bincount(classes, minlength=16)
    return {
        "snapshot": size_map.snapshot,
        "allocation": size_map.allocation,
        "compressor": size_map.compressor,
        "entries": size_map.n_entries,
        "entries_by_class": histogram[:N_CLASSES].tolist(),
        "unknown": int(histogram[UNKNOWN_CLASS]),
    }
