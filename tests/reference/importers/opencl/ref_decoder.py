"""Reference model of `decoder.pyx`: decodes a whole file of packed records in sequence."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from buddysim.importers.opencl.assumptions import COMPUTE_GAP, FIRST_COMPUTE_GAP, LOADS_IN_FLIGHT
from buddysim.trace.records import OP_LOAD, OP_STORE
from tests.reference.trace.ref_coalesce import coalesce_op

HEAD = struct.Struct("<IIHHBBHIQ")


@dataclass
class RefDecodedOp:
    """One warp memory operation."""

    kind: int
    width: int
    lines: list[int]
    gap_instructions: int
    use_distance: int = 0


@dataclass
class RefDecodedLaunch:
    """A launch's operations by work-group and warp, in the file's order."""

    number: int
    warps: dict[tuple[int, int], list[RefDecodedOp]] = field(default_factory=dict)


def decode(data: bytes, first: int, end: int) -> list[RefDecodedLaunch]:
    """The launches from `first` to before `end`."""
    launches: dict[int, RefDecodedLaunch] = {}
    at = 0
    while at < len(data):
        launch, block, warp, _, kind, width, n_lanes, _, address = HEAD.unpack_from(data, at)
        at += HEAD.size
        distances = struct.unpack_from(f"<{n_lanes - 1}i", data, at)
        at += 4 * (n_lanes - 1)
        if first <= launch < end:
            ops = launches.setdefault(launch, RefDecodedLaunch(launch)).warps.setdefault((block, warp), [])
            words = coalesce_op([address, *(address + distance for distance in distances)], width, kind == OP_STORE)
            ops.append(RefDecodedOp(kind, width, words, COMPUTE_GAP if ops else FIRST_COMPUTE_GAP))
    for decoded in launches.values():
        for ops in decoded.warps.values():
            assume_uses(ops)
    return list(launches.values())


def assume_uses(ops: list[RefDecodedOp]) -> None:
    """Set the first use of every load, as `assumed.DEPENDENCIES_TEXT` describes."""
    for index, op in enumerate(ops):
        if op.kind == OP_LOAD:
            rest = range(index + 1, len(ops))
            use = next((other for other in rest if ops[other].kind != OP_LOAD), len(ops))
            use = min(use, index + LOADS_IN_FLIGHT)
            op.use_distance = 1 + sum(ops[other].gap_instructions + 1 for other in range(index + 1, use))
