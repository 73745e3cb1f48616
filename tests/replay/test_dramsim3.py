"""Shares of peak bandwidth through the whole engine, held against DRAMsim3's with the same timings."""

import random
import tomllib
from pathlib import Path

import pytest

from buddysim.machine import Machine
from tests.replay.bare import run_warps

REFERENCE = tomllib.loads(Path(__file__).with_name("data").joinpath("dramsim3.toml").read_text())
TOLERANCE = {"read": 0.05, "write": 0.05}  # of what else: 10 %
WARPS, OPS, LINES = 1792, 6, 32
CASES = [(name, kind) for name in REFERENCE for kind in REFERENCE[name] if not kind.endswith("_evicting")]
QUICK = {"read", "write", "read_2_write_1", "random_32", "random_64", "random_32_mixed"}


def warps_of(kind: str, entries: int):
    """Warps that read and write as the kind says, 32 lines an instruction; of mixed streams, each begins elsewhere."""
    draw, parts = random.Random(1), kind.split("_")
    for warp in range(WARPS):
        ops = []
        for i in range(OPS):
            if parts[0] == "random":
                run = int(parts[1]) // 32
                write = draw.random() < {"mixed": 1 / 3, "write": 1.0}.get(parts[-1], 0.0)
                masks = [(1 << run) - 1 << draw.randrange(5 - run) for _ in range(LINES)]
                picked = draw.sample(range(entries), LINES)
                ops.append((int(write), [(e, m, m * write) for e, m in zip(picked, masks, strict=True)]))
                continue
            reads, writes = (int(parts[1]), int(parts[3])) if len(parts) > 1 else (kind == "read", kind == "write")
            array = (i + warp) % (reads + writes)
            at = entries // 4 * array + (i * WARPS + warp) * LINES
            ops.append((int(array >= reads), [(at + j, 15, 15 * (array >= reads)) for j in range(LINES)]))
        yield ops


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        case if case[0] == "p100-nvlink2" and case[1] in QUICK else pytest.param(*case, marks=pytest.mark.slow)
        for case in CASES
    ],
)
def test_bandwidth_is_that_of_a_cycle_by_cycle_controller(name, kind):
    machine = Machine.load(name)
    small = {"l1.enabled": False, "l2.size": f"{8 * 128 * machine.l2.slices * machine.l2.ways} B"}
    machine = machine.with_overrides({**small, "kernel.launch_latency": "0 ns"})
    entries = 2**23
    count, _ = run_warps(machine, list(warps_of(kind, entries)), regions=[(0, entries, 0, 4)], warps_per_block=8)
    burst = -(-32 * 10**12 // machine.bytes_per_s(machine.dram.pseudo_channel_bandwidth))
    share = sum(count["dram_bursts"]) / len(count["dram_bursts"]) * burst / count["now_ps"]
    lowest, highest = sorted(REFERENCE[name][kind])
    tolerance = TOLERANCE.get(kind, 0.1)
    assert lowest * (1 - tolerance) <= share <= highest * (1 + tolerance)
