"""Small traces and records for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import buddysim.trace as bt
from buddysim.trace.writer import Records

Op = tuple[dict[str, int], list[int]]  # fields of OP_DTYPE, lines


def line(address: int, sectors: int = 15, whole: int = 0) -> int:
    """Return a line record."""
    return address >> 7 << 8 | whole << 4 | sectors


def records(blocks: Sequence[tuple[int, Sequence[tuple[dict[str, int], Sequence[Op]]]]]) -> Records:
    """Build records from nested lists: blocks of (number, warps), warps of (fields, ops), ops of (fields, lines)."""
    all_blocks, all_warps, all_ops, all_lines = [], [], [], []
    for number, warps in blocks:
        all_blocks.append((number, len(all_warps), len(warps)))
        for warp_fields, ops in warps:
            all_warps.append(_record(bt.WARP_DTYPE, {**warp_fields, "first_op": len(all_ops), "n_ops": len(ops)}))
            for op_fields, lines in ops:
                counted = {"first_line": len(all_lines), "n_lines": len(lines)}
                all_ops.append(_record(bt.OP_DTYPE, {**op_fields, **counted}))
                all_lines += lines
    return (
        np.array(all_blocks, bt.BLOCK_DTYPE),
        np.array(all_warps, bt.WARP_DTYPE),
        np.array(all_ops, bt.OP_DTYPE),
        np.array(all_lines, np.uint64),
    )


def _record(dtype: np.dtype[np.void], fields: dict[str, int]) -> tuple[int, ...]:
    """Return a record's fields in the order of its type: an array for each one took most of a test's time."""
    names = dtype.names or ()
    unknown = fields.keys() - set(names)
    assert not unknown, unknown
    return tuple(fields.get(name, 0) for name in names)


def streaming(n_blocks: int = 16, block_warps: int = 4, warp_ops: int = 12, base: int = 1 << 33) -> Records:
    """Return a kernel whose warps read two arrays and write a third, one line of four sectors per op."""
    n_warps = n_blocks * block_warps
    n_ops = n_warps * warp_ops
    blocks = np.zeros(n_blocks, bt.BLOCK_DTYPE)
    blocks["block"], blocks["n_warps"] = np.arange(n_blocks), block_warps
    blocks["first_warp"] = np.arange(n_blocks) * block_warps
    warps = np.zeros(n_warps, bt.WARP_DTYPE)
    warps["warp"], warps["n_ops"], warps["tail_gap_instructions"] = np.arange(n_warps) % block_warps, warp_ops, 2
    warps["first_op"] = np.arange(n_warps) * warp_ops
    position = np.arange(n_ops) % warp_ops
    array = position % 3
    ops = np.zeros(n_ops, bt.OP_DTYPE)
    ops["first_line"], ops["n_lines"], ops["gap_instructions"], ops["bytes_per_lane"] = (
        np.arange(n_ops),
        1,
        3 + array,
        4,
    )
    ops["kind"] = np.where(array == 2, bt.OP_STORE, bt.OP_LOAD)
    ops["use_distance"] = np.where(array == 2, 0, 1)
    number = np.arange(n_ops) // warp_ops * -(-warp_ops // 3) + position // 3
    address = base + array * (n_ops * 128) + number * 128
    masks = np.where(array == 2, 255, 15)
    return blocks, warps, ops, (address.astype(np.uint64) >> np.uint64(7) << np.uint64(8)) | masks.astype(np.uint64)


def write_small(path: Path, n_blocks: int = 16) -> Path:
    """Write a trace with every kind of section."""
    part = streaming(n_blocks)
    array_bytes = len(part[2]) * 128
    base = 1 << 33
    rng = np.random.default_rng(1)
    assumptions = {"compute_gaps": "by formula", "contents": "random"}
    provenance = bt.Provenance("test", "1", "nothing", "CC0", "write_small", assumptions)
    with bt.TraceWriter(path, provenance) as writer:
        data = writer.add_allocation("data", base, 3 * array_bytes)
        scratch = writer.add_allocation("scratch", base + 3 * array_bytes, 1000)
        host = writer.add_allocation("host", 1 << 40, 4096, "host")
        writer.memcpy("htod", base, array_bytes, 1 << 40)
        writer.memset(base + array_bytes, array_bytes, 0)
        before = writer.add_snapshot(0, "before")
        writer.begin_kernel("first", (n_blocks, 1, 1), (128, 1, 1), registers=32, shared_memory_bytes=1024)
        writer.add_blocks(*part)
        writer.end_kernel()
        writer.free_allocation(scratch)
        writer.begin_kernel("second", (n_blocks, 2, 1), (64, 2, 1), stream=7, launch_index=5, code_bytes=1040)
        for first in range(0, n_blocks, 4):
            writer.add_blocks(*records([(first, [({"warp": 0}, [({"kind": 0}, [line(base + 128 * first)])])])]))
        writer.end_kernel()
        writer.begin_kernel("empty", (1, 1, 1), (32, 1, 1))
        writer.end_kernel()
        writer.memcpy("dtod", base, 128, base + 256, stream=7)
        writer.memcpy("dtoh", base, 0, stream=1 << 40, host_memory="pinned", latency_ps=4_000_000)
        writer.memset(base, 64, None, stream=2)
        after = writer.add_snapshot(6, "after")
        whole = rng.integers(0, 256, 1000).astype(np.uint8)
        writer.add_contents(before, scratch, whole)
        n_pages = -(-3 * array_bytes // 8192)
        pages = np.arange(0, n_pages, 2)
        writer.add_contents(after, data, bytes(int(np.minimum(8192, 3 * array_bytes - pages * 8192).sum())), pages)
        classes = rng.integers(0, 8, 3 * array_bytes // 128).astype(np.uint8)
        classes[::5] = 15
        writer.add_size_map(after, data, classes)
        writer.add_size_map(after, host, np.zeros(32, np.uint8), "bdi")
    return path
