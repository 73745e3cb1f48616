"""Kernels on an L2 full of dirty lines take the time that DRAMsim3's fractions of peak bandwidth give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import buddysim
from buddysim.machine import Machine
from buddysim.synthetic.parts.kernels import line_records, load, store, write_kernel
from buddysim.validation.dram import load_reference
from tests.replay.events import BASE, provenance

REFERENCE = load_reference()
WARPS = 8  # per thread block; 64 per SM, all at once
LINES_ACCESSED = 2**19
SAMPLED_FROM = 2**21  # entries
#: By what the second kernel does: its operations (1: a store), the reference while lines of the first one are evicted,
#: and the sectors that each line touched then reads.
KERNELS: dict[str, tuple[list[int], str, float]] = {
    "read": ([0], "read_evicting", 4),
    "write": ([1], "write", 0),
    "read_1_write_1": ([0, 1], "read_1_write_1_evicting", 2),
    "read_2_write_1": ([0, 0, 1], "read_2_write_1_evicting", 8 / 3),
    "random_32": ([0], "random_32_evicting", 1),
    "random_64": ([0], "random_64_evicting", 2),
    "random_32_mixed": ([0, 0, 1], "random_32_evicting", 2 / 3),
}


def write(path: Path, machine: Machine, kind: str, lines: int) -> Path:
    """Write a kernel that fills the L2 with dirty lines, and a second one that accesses `lines` an instruction."""
    stores, dirty, blocks = KERNELS[kind][0], machine.l2.size // 128, 8 * machine.sm.count
    rounds = round(LINES_ACCESSED / (blocks * WARPS * lines * len(stores)))
    draw, each = np.random.default_rng(1), blocks * WARPS * lines * rounds
    random, sectors = kind.startswith("random"), 2 ** (int(kind.split("_")[1]) // 32) - 1 if "random" in kind else 15
    warp = np.arange(WARPS, dtype=np.uint64).reshape(1, -1, 1, 1)
    round_index = np.arange(rounds, dtype=np.uint64).reshape(1, 1, -1, 1)

    def dirtied(block: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        entry = (block * np.uint64(WARPS) + warp) * np.uint64(32) + np.arange(32, dtype=np.uint64)
        return line_records(BASE, entry, 15, 15)

    def touched(block: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        if random:
            shape = (len(block), WARPS, rounds, lines * len(stores))
            shift = draw.integers(0, 5 - sectors.bit_length(), shape, dtype=np.uint64)
            masks = np.uint64(sectors) << shift
            written = masks * np.repeat(np.array(stores, dtype=np.uint64), lines)
            return line_records(bases[0], draw.integers(0, SAMPLED_FROM, shape, dtype=np.uint64), masks, written)
        entry = ((round_index * np.uint64(blocks) + block) * np.uint64(WARPS) + warp) * np.uint64(lines)
        entry = entry + np.arange(lines, dtype=np.uint64)
        return np.concatenate(
            [line_records(base, entry, 15, 15 * kind) for base, kind in zip(bases, stores, strict=True)], axis=-1
        )

    with buddysim.trace.TraceWriter(path, provenance()) as writer:
        writer.add_allocation("dirty", BASE, 128 * dirty)
        bases = [BASE + (number + 1 << 29) for number in range(1 if random else len(stores))]
        for number, base in enumerate(bases):
            writer.add_allocation(f"array{number}", base, 128 * (SAMPLED_FROM if random else each))
        write_kernel(
            writer,
            "dirty",
            blocks=dirty // (32 * WARPS),
            warps_per_block=WARPS,
            operations=[store(lines=32)],
            repeats=1,
            lines_of=dirtied,
        )
        operations = [store(lines=lines) if kind else load(lines=lines, use_distance=len(stores)) for kind in stores]
        write_kernel(
            writer, kind, blocks=blocks, warps_per_block=WARPS, operations=operations, repeats=rounds, lines_of=touched
        )
    return path


CASES = [
    pytest.param(name, kind, lines, marks=[] if name == "p100-nvlink2" else pytest.mark.slow)
    for name in ("p100-nvlink2", "v100")
    for kind in KERNELS
    for lines in (8, 32)
]


@pytest.mark.parametrize(("name", "kind", "lines"), CASES)
def test_a_kernel_on_an_l2_of_dirty_lines_takes_the_time_of_a_cycle_by_cycle_controller(tmp_path, name, kind, lines):
    """The times of streams agree within 5 %, of others within 10 %, with the range of DRAMsim3's two queues."""
    machine = Machine.load(name).with_overrides({"l2.fetch_granularity": "32 B"})  # as the reference's streams
    dram, dirty = machine.dram, machine.l2.size // 128
    kernel = buddysim.simulate(write(tmp_path / "t.bin", machine, kind, lines), machine, "ideal").per_kernel[1]
    evicting, reads = KERNELS[kind][1:]
    moved = kernel["device_read_sectors"] + kernel["device_write_sectors"]
    moved_first = dirty * (4 + reads)
    burst_ps = (
        -(-32 * 10**12 // machine.bytes_per_s(dram.pseudo_channel_bandwidth)) / dram.channels / dram.pseudo_channels
    )
    fractions = zip(sorted(REFERENCE[name][evicting]), sorted(REFERENCE[name][kind]), strict=True)
    longest, shortest = (burst_ps * (moved_first / first + (moved - moved_first) / then) for first, then in fractions)
    tolerance = 0.05 if kind in ("read", "write") else 0.1
    time_ps = kernel["time_ps"] - machine.ps(machine.kernel.launch_latency)
    assert shortest / (1 + tolerance) <= time_ps <= longest / (1 - tolerance)
