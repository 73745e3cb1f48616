"""Replays a point of a curve: the synthetic workload that does what the benchmark does, and its time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from buddysim.machine import Machine
from buddysim.replay import simulate
from buddysim.synthetic import make_trace
from buddysim.validation.curve.curve_data import CHASE, PER_SM, SHARED, STREAM, STRIDES, MeasuredCurve

KIB = 1024
STRIDE = {"RRZE-HPC": 128, "te42kyfo": 64}
"""Bytes between the elements of a chase, by the source of the benchmark."""
_SAMPLE = 16384
_MAX_L2S = 4
"""Largest footprint of chases and shared sets, in L2 sizes: beyond it nothing modelled changes (no TLB)."""
_WARM_FOOTPRINT = 1 << 20
_HOST_FOOTPRINT, _HOST_HOPS = "16 MiB", 4096
_PER_SM_WARPS = 8
_PS_PER_S = 10**12
_ONE_BLOCK_BELOW = 128
_WAVES = (4, 8)
"""Waves of blocks of the shorter kernel of STREAM, and how many more the longer one has."""
_L2S_MOVED = 2
"""L2 sizes that an untimed kernel of STREAM moves first: it leaves as much of the L2 dirty as a long run."""


def kernel_times(machine: Machine, workload: str, settings: Mapping[str, object]) -> list[int]:
    """Return the time of each kernel of a synthetic workload, in picoseconds."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "workload.bin"
        make_trace(workload, path, {name: str(value) for name, value in settings.items()})
        return [int(kernel["time_ps"]) for kernel in simulate(path, machine, "ideal").per_kernel]


def replay_curve(machine: Machine, curve: MeasuredCurve) -> list[tuple[float, float, float]]:
    """Return x, measured and simulated of the compared points of a curve; empty if no workload does the same."""
    max_footprint = _MAX_L2S * machine.l2.size / KIB if curve.benchmark in (CHASE, SHARED) else math.inf
    simulated_at: dict[float, float | None] = {}
    points = []
    for x, y in curve.compared():
        replayed_x = min(x, max_footprint)
        if replayed_x not in simulated_at:
            simulated_at[replayed_x] = replay_point(machine, curve, replayed_x)
        simulated = simulated_at[replayed_x]
        if simulated is not None:
            points.append((x, y, simulated))
    return points


def replay_point(machine: Machine, curve: MeasuredCurve, x: float) -> float | None:
    """Return the simulated value of a point, in the curve's unit; None if no workload does what the curve measures."""
    if curve.benchmark == CHASE:
        return simulate_chase(machine, round(x * KIB), STRIDE.get(curve.source, 128))
    if curve.benchmark == PER_SM:
        return simulate_per_sm_loads(machine, round(x * KIB))
    if curve.benchmark == SHARED:
        return simulate_shared_loads(machine, round(x * KIB))
    if curve.benchmark.startswith(STREAM):
        return simulate_stream(machine, curve, x)
    if curve.benchmark == STRIDES:
        return simulate_strides(machine, round(x))
    return None


def to_core_cycles(machine: Machine, ps: float) -> float:
    """Convert picoseconds to cycles of the core clock."""
    return ps * float(machine.clock.core.hz) / _PS_PER_S


def simulate_chase(machine: Machine, footprint: int, stride: int) -> float:
    """Return the cycles of a load of a pointer chase in its steady state."""
    elements = max(1, footprint // stride)
    settings: dict[str, object] = {"footprint": f"{max(footprint, stride)} B", "stride": f"{stride} B"}
    if footprint <= _WARM_FOOTPRINT:  # the L1 may hold a part: time the later passes over the footprint
        hops = elements * -(-512 // elements)
        fresh = {"first_hops": elements}
        short, long = (kernel_times(machine, "chase", settings | fresh | {"hops": n * hops})[1] for n in (1, 2))
        return to_core_cycles(machine, long - short) / hops
    warm = {"first_hops": elements} if footprint <= 2 * machine.l2.size else {}
    return to_core_cycles(machine, kernel_times(machine, "chase", settings | warm | {"hops": _SAMPLE})[-1]) / _SAMPLE


def simulate_host_chase(machine: Machine) -> float:
    """Return the cycles of a load of a pointer chase over host memory."""
    settings = {"footprint": _HOST_FOOTPRINT, "stride": "128 B", "hops": _HOST_HOPS, "space": "host"}
    return to_core_cycles(machine, kernel_times(machine, "chase", settings)[-1]) / _HOST_HOPS


def simulate_per_sm_loads(machine: Machine, footprint: int) -> float:
    """Return the bandwidth of SMs that each read one working set repeatedly, in GB/s over all SMs."""
    one_pass = max(1, -(-footprint // (128 * _PER_SM_WARPS)))  # loads of a warp
    if one_pass <= 512:
        warm, loads = 2 * one_pass * -(-64 // one_pass), one_pass * -(-512 // one_pass)
    else:
        warm, loads = 128, 256
    settings = {
        "footprint": f"{max(footprint // 128, 1) * 128} B",
        "blocks": machine.sm.count,
        "warm": warm,
        "loads": loads,
    }
    _, short, long = kernel_times(machine, "sm-loads", settings)
    return machine.sm.count * _PER_SM_WARPS * loads * 128 / (long - short) * 1000


def simulate_shared_loads(machine: Machine, footprint: int) -> float:
    """Return the bandwidth of all SMs that read chunks of one shared working set, in GB/s."""
    blocks = 2 * machine.sm.count
    _, short, long = kernel_times(machine, "l2-loads", {"chunks": max(1, footprint // (512 * KIB)), "blocks": blocks})
    return blocks * 512 * KIB / (long - short) * 1000


def stream_shape(machine: Machine, curve: MeasuredCurve, occupancy: float) -> tuple[int, int]:
    """Return the thread blocks per SM, and the threads of each, at an occupancy in percent."""
    threads = round(occupancy / 100 * machine.sm.threads / 16) * 16
    single = curve.source == "RRZE-HPC" and (threads < _ONE_BLOCK_BELOW or threads == 5 * 32)
    blocks = 1 if single else 2
    return blocks, max(16, threads // blocks)


def simulate_stream(machine: Machine, curve: MeasuredCurve, occupancy: float) -> float:
    """Return the bandwidth of a kernel of STREAM in GB/s, as STREAM counts its arrays."""
    blocks_per_sm, threads = stream_shape(machine, curve, occupancy)
    op = curve.benchmark.removeprefix(STREAM)
    arrays = {"init": 1, "read": 1, "triad": 3}.get(op, 2)
    if op == "triad" and curve.source == "RRZE-HPC":
        op, arrays = "triad4", 4
    few, more = (waves * blocks_per_sm * machine.sm.count for waves in _WAVES)
    settings = {
        "op": op,
        "threads": threads,
        "blocks": few,
        "more": more,
        "shared_memory": f"{machine.sm.shared_memory // blocks_per_sm} B",
        "code": curve.code,
        "first": 0 if op == "read" else -(-_L2S_MOVED * machine.l2.size // (arrays * threads * 8)),
    }
    *_, short, long = kernel_times(machine, "occupancy", settings)
    return arrays * more * threads * 8 / (long - short) * 1000


def simulate_strides(machine: Machine, stride: int) -> float:
    """Return the cycles of a warp's load from the L1 whose lanes read with a stride of words."""
    rounds = 64
    short, long = kernel_times(machine, "l1-strides", {"stride": stride, "rounds": rounds})
    return to_core_cycles(machine, long - short) / (rounds * 8 * 32)
