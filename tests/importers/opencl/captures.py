"""Small captures for tests."""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.reference.importers.opencl.ref_decoder import HEAD

Record = tuple[int, int, int, int, int, list[int]]  # launch, work-group, warp, op, bytes per lane, lane addresses


def packed(records: Sequence[Record]) -> bytes:
    """Return packed records in the format of the capture."""
    parts = []
    for launch, block, warp, kind, width, addresses in records:
        mask = (1 << len(addresses)) - 1
        parts.append(HEAD.pack(launch, block, warp, 7, kind, width, len(addresses), mask, addresses[0]))
        parts.append(np.array([address - addresses[0] for address in addresses[1:]], "<i4").tobytes())
    return b"".join(parts)


def write_bundle(folder: Path, *, n_groups: int = 3, launches: int = 3) -> Path:
    """Return a capture whose launches read one buffer and write another, with two snapshots."""
    folder.mkdir()
    source, target = 1 << 48, 2 << 48
    events: list[dict[str, object]] = [
        {"ev": "alloc", "launch": 0, "addr": source, "size": 40_000, "flags": 1},
        {"ev": "alloc", "launch": 0, "addr": target, "size": 20_000, "flags": 1},
    ]
    records: list[Record] = []
    for launch in range(launches):
        events.append(
            {"ev": "kernel", "launch": launch, "name": "copy", "global": [64 * n_groups, 1, 1], "local": [64, 1, 1]}
        )
        for group in range(n_groups):
            for warp in range(2):
                offsets = [4 * (64 * group + 32 * warp + lane) for lane in range(32)]
                records.append((launch, group, warp, 0, 4, [source + offset for offset in offsets]))
                records.append((launch, group, warp, 0, 4, [source + 4096 + offset for offset in offsets]))
                records.append((launch, group, warp, 1, 4, [target + offset for offset in offsets]))
        events.append({"ev": "kernel_end", "launch": launch, "accesses": 0, "warp_ops": 6 * n_groups, "sec": 0.1})
    events.append({"ev": "free", "launch": launches, "addr": source})
    (folder / "meta.jsonl").write_text("\n".join(json.dumps(event) for event in events) + "\n")
    (folder / "warp.trace.xz").write_bytes(lzma.compress(packed(records)))
    values = np.random.default_rng(1).integers(0, 50, 10_000).astype(np.uint32)
    for launch in (0, launches - 1):
        (folder / f"snap_{launch}").mkdir()
        (folder / f"snap_{launch}" / f"{source}.bin").write_bytes(values.tobytes())
        sampled = values[:5000].tobytes()
        pages = sampled[:8192] + sampled[16384:]
        (folder / f"snap_{launch}" / f"{target}.every2.bin").write_bytes(pages)
    return folder
