"""A point of a curve as a replay: the workload that does what the benchmark does, and what it takes."""

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
"""Bytes between the places of a chase, by the source of the benchmark."""
_SAMPLE = 16384
_MOST_L2S = 4
"""L2 sizes over which chases and shared sets go at most: beyond, nothing that is modelled changes (no TLB)."""
_WARM_LAPS = 1 << 20
_HOST_FOOTPRINT, _HOST_HOPS = "16 MiB", 4096
_PER_SM_WARPS = 8
_PS_PER_S = 10**12
_ONE_BLOCK_BELOW = 128
_TURNS = (4, 8)
"""Turns of blocks of the shorter kernel of STREAM, and by which the longer one has more."""
_L2S_MOVED = 2
"""L2 sizes that a kernel of STREAM moves before those that are timed: as much of the L2 is dirty as in a long run."""


def kernel_times(machine: Machine, workload: str, settings: Mapping[str, object]) -> list[int]:
    """Picoseconds of each kernel of a synthetic workload."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "workload.bin"
        make_trace(workload, path, {name: str(value) for name, value in settings.items()})
        return [int(kernel["time_ps"]) for kernel in simulate(path, machine, "ideal").per_kernel]


def replays(machine: Machine, curve: MeasuredCurve) -> list[tuple[float, float, float]]:
    """x, measured and simulated of the points of a curve that are compared; none where no workload does the same."""
    most = _MOST_L2S * machine.l2.size / KIB if curve.benchmark in (CHASE, SHARED) else math.inf
    known: dict[float, float | None] = {}
    found = []
    for x, y in curve.compared():
        at = min(x, most)
        if at not in known:
            known[at] = replayed(machine, curve, at)
        ours = known[at]
        if ours is not None:
            found.append((x, y, ours))
    return found


def replayed(machine: Machine, curve: MeasuredCurve, x: float) -> float | None:
    """What a machine takes at a point of a curve, in the curve's unit; None where no workload does what it measures."""
    if curve.benchmark == CHASE:
        return chase(machine, round(x * KIB), STRIDE.get(curve.source, 128))
    if curve.benchmark == PER_SM:
        return per_sm(machine, round(x * KIB))
    if curve.benchmark == SHARED:
        return shared(machine, round(x * KIB))
    if curve.benchmark.startswith(STREAM):
        return stream(machine, curve, x)
    if curve.benchmark == STRIDES:
        return strides(machine, round(x))
    return None


def cycles(machine: Machine, ps: float) -> float:
    """Picoseconds as cycles of the core clock."""
    return ps * float(machine.clock.core.hz) / _PS_PER_S


def chase(machine: Machine, footprint: int, stride: int) -> float:
    """Cycles of a load of a pointer chase whose laps have gone on for long."""
    places = max(1, footprint // stride)
    settings: dict[str, object] = {"footprint": f"{max(footprint, stride)} B", "stride": f"{stride} B"}
    if footprint <= _WARM_LAPS:  # the L1 may hold a part: the second lap of a kernel tells
        hops = places * -(-512 // places)
        fresh = {"first_hops": places}
        short, long = (kernel_times(machine, "chase", settings | fresh | {"hops": n * hops})[1] for n in (1, 2))
        return cycles(machine, long - short) / hops
    warm = {"first_hops": places} if footprint <= 2 * machine.l2.size else {}
    return cycles(machine, kernel_times(machine, "chase", settings | warm | {"hops": _SAMPLE})[-1]) / _SAMPLE


def host_chase(machine: Machine) -> float:
    """Cycles of a load of a pointer chase over host memory."""
    settings = {"footprint": _HOST_FOOTPRINT, "stride": "128 B", "hops": _HOST_HOPS, "space": "host"}
    return cycles(machine, kernel_times(machine, "chase", settings)[-1]) / _HOST_HOPS


def per_sm(machine: Machine, footprint: int) -> float:
    """GB/s of all SMs that read one working set again and again."""
    lap = max(1, -(-footprint // (128 * _PER_SM_WARPS)))  # loads of a warp
    warm, loads = (2 * lap * -(-64 // lap), lap * -(-512 // lap)) if lap <= 512 else (128, 256)
    settings = {
        "footprint": f"{max(footprint // 128, 1) * 128} B",
        "blocks": machine.sm.count,
        "warm": warm,
        "loads": loads,
    }
    _, short, long = kernel_times(machine, "sm-loads", settings)
    return machine.sm.count * _PER_SM_WARPS * loads * 128 / (long - short) * 1000


def shared(machine: Machine, footprint: int) -> float:
    """GB/s of all SMs that read chunks of one working set in turn."""
    blocks = 2 * machine.sm.count
    _, short, long = kernel_times(machine, "l2-loads", {"chunks": max(1, footprint // (512 * KIB)), "blocks": blocks})
    return blocks * 512 * KIB / (long - short) * 1000


def stream_shape(machine: Machine, curve: MeasuredCurve, occupancy: float) -> tuple[int, int]:
    """Thread blocks per SM, and threads of each, at an occupancy in percent."""
    threads = round(occupancy / 100 * machine.sm.threads / 16) * 16
    single = curve.source == "RRZE-HPC" and (threads < _ONE_BLOCK_BELOW or threads == 5 * 32)
    blocks = 1 if single else 2
    return blocks, max(16, threads // blocks)


def stream(machine: Machine, curve: MeasuredCurve, occupancy: float) -> float:
    """GB/s of a kernel of STREAM, as it counts its arrays."""
    per_sm, threads = stream_shape(machine, curve, occupancy)
    op = curve.benchmark.removeprefix(STREAM)
    arrays = {"init": 1, "read": 1, "triad": 3}.get(op, 2)
    if op == "triad" and curve.source == "RRZE-HPC":
        op, arrays = "triad4", 4
    few, more = (turns * per_sm * machine.sm.count for turns in _TURNS)
    settings = {
        "op": op,
        "threads": threads,
        "blocks": few,
        "more": more,
        "shared_memory": f"{machine.sm.shared_memory // per_sm} B",
        "code": curve.code,
        "first": 0 if op == "read" else -(-_L2S_MOVED * machine.l2.size // (arrays * threads * 8)),
    }
    *_, short, long = kernel_times(machine, "occupancy", settings)
    return arrays * more * threads * 8 / (long - short) * 1000


def strides(machine: Machine, stride: int) -> float:
    """Cycles of a warp's load from the L1 whose lanes are words apart."""
    rounds = 64
    short, long = kernel_times(machine, "l1-strides", {"stride": stride, "rounds": rounds})
    return cycles(machine, long - short) / (rounds * 8 * 32)
