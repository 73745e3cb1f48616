"""What a trace says of one thread block: sectors of each warp access, by tensor and kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from buddysim.trace import open_trace

KINDS = ("load", "store", "atomic")

Accesses = dict[tuple[str, str], tuple[int, dict[int, int]]]


def accesses_of(path: Path, kernel: int, block: int) -> Accesses:
    """Return bytes per lane and numbers of warp accesses by their sectors, by argument and kind."""
    widths: dict[tuple[str, str], int] = {}
    sectors: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    with open_trace(path) as trace:
        bases = sorted((each.base, each.end, each.name.rpartition(".")[2]) for each in trace.allocations)
        for reference in trace.kernels[kernel].chunks:
            chunk = trace.decode_chunk(reference)
            for record in chunk.blocks:
                if record["block"] != block:
                    continue
                for warp in chunk.warps[record["first_warp"] : record["first_warp"] + record["n_warps"]]:
                    for op in chunk.ops[warp["first_op"] : warp["first_op"] + warp["n_ops"]]:
                        if not op["n_lines"]:
                            continue
                        lines = chunk.lines[op["first_line"] : op["first_line"] + op["n_lines"]]
                        address = (int(lines[0]) >> 8) * 128
                        (name,) = (name for base, end, name in bases if base <= address + 127 and address < end)
                        key = name, KINDS[op["kind"]]
                        widths[key] = int(op["bytes_per_lane"])
                        sectors[key][sum((int(line) & 15).bit_count() for line in lines)] += 1
    return {key: (widths[key], dict(sectors[key])) for key in sectors}
