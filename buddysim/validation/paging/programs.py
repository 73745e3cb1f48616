"""The measured programs as traces: accesses of each thread of their kernels, from the published sources.

GitHub DebashisGanguly/gpgpu-sim_UVMSmart, benchmarks/Managed: FDTD-2D (PolyBench-GPU, 1200 x 1200, 5 steps), hotspot
(Rodinia, 1024 x 1024, pyramid 2, 8 iterations), ra (2^20 random words, every 100th thread), bfs (Rodinia, 261,444
nodes, its generator's distribution of edges). Traces have no arithmetic: kernels that wait for pages hide it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from buddysim.synthetic.parts.hashing import below
from buddysim.validation.paging.lanes import OFF, LaneInstruction, LaneKernel, coalesce
from buddysim.validation.paging.space import ManagedSpace

Numbers = npt.NDArray[np.int64]
Choice = npt.NDArray[np.bool_]
WORD = 4
BFS_THREADS = 512
"""Threads of a thread block."""


def loads(on: Choice, address: Numbers, size: int = WORD, use_distance: int = 1) -> LaneInstruction:
    """Return a load of the active threads."""
    return coalesce(np.where(on, address, OFF).reshape(-1, 32), size, stores=False, use_distance=use_distance)


def stores(on: Choice, address: Numbers, size: int = WORD) -> LaneInstruction:
    """Return a store of the active threads."""
    return coalesce(np.where(on, address, OFF).reshape(-1, 32), size, stores=True)


def kernel(name: str, threads: int, block: int, steps: list[LaneInstruction]) -> LaneKernel:
    return LaneKernel(name, threads // 32, block // 32, steps)


def fdtd(space: ManagedSpace, side: int = 1200, steps: int = 5) -> Iterator[LaneKernel]:
    """FDTD-2D: per step one kernel for each field, of blocks of 8 rows of 32 threads."""
    fict = space.array("fict", WORD * steps)
    words = {"ex": side * (side + 1), "ey": (side + 1) * side, "hz": side * side}
    ex, ey, hz = (space.array(name, WORD * number, WORD * side * side) for name, number in words.items())
    by, bx, ty, tx = np.indices((-(-side // 8), -(-side // 32), 8, 32), dtype=np.int64)
    i, j = 8 * by + ty, 32 * bx + tx
    inside, at, wide = (i < side) & (j < side), WORD * (i * side + j), WORD * (i * (side + 1) + j)
    row, lower, right = WORD * side, inside & (i > 0), inside & (j > 0)
    first = [
        loads(lower, ey + at, use_distance=3), loads(lower, hz + at, use_distance=2), loads(lower, hz + at - row),
        stores(inside, ey + at),
    ]  # fmt: skip
    second = [
        loads(right, ex + wide, use_distance=3), loads(right, hz + at, use_distance=2), loads(right, hz + at - WORD),
        stores(right, ex + wide),
    ]  # fmt: skip
    read = [hz + at, ex + wide + WORD, ex + wide, ey + at + row, ey + at]
    third = [loads(inside, one, use_distance=5 - number) for number, one in enumerate(read)]
    third.append(stores(inside, hz + at))
    for number in range(steps):
        boundary = loads(inside & (i == 0), fict + WORD * number + 0 * at)
        yield kernel("fdtd_step1_kernel", i.size, 256, [boundary, *first])
        yield kernel("fdtd_step2_kernel", i.size, 256, second)
        yield kernel("fdtd_step3_kernel", i.size, 256, third)


def hotspot(space: ManagedSpace, side: int = 1024, iterations: int = 8, pyramid: int = 2) -> Iterator[LaneKernel]:
    """hotspot: blocks of 16 x 16 threads, whose halos overlap by `pyramid` iterations."""
    words = WORD * side * side
    source, target, power = space.array("temp0", words), space.array("temp1", words, 0), space.array("power", words)
    small = 16 - 2 * pyramid
    blocks = -(-side // small)
    by, bx, ty, tx = np.indices((blocks, blocks, 16, 16), dtype=np.int64)
    y, x = small * by - pyramid + ty, small * bx - pyramid + tx
    inside = (y >= 0) & (y < side) & (x >= 0) & (x < side)
    is_stored = inside & (np.minimum(ty, tx) >= pyramid) & (np.maximum(ty, tx) <= 15 - pyramid)
    at = WORD * (side * y + x)
    for _ in range(iterations // pyramid):
        steps = [loads(inside, source + at, use_distance=2), loads(inside, power + at), stores(is_stored, target + at)]
        yield kernel("calculate_temp", y.size, 256, steps)
        source, target = target, source


def ra(space: ManagedSpace, words: int = 1 << 20) -> Iterator[LaneKernel]:
    """ra: every 100th thread reads a number, looks it up at random and writes there."""
    read, written, table = (
        space.array("input", WORD * words),
        space.array("output", WORD * words, 0),
        space.array("table", WORD * words),
    )
    thread = np.arange(words, dtype=np.int64)
    active = thread % 100 == 0
    index = WORD * below(thread.astype(np.uint64), words, 0).astype(np.int64)
    steps = [loads(active, read + WORD * thread), loads(active, table + index), stores(active, written + index)]
    yield kernel("kernel", words, 256, steps)


def bfs(space: ManagedSpace, nodes: int = 261_444) -> Iterator[LaneKernel]:
    """bfs: level by level over a graph of 2 to 4 random edges for each node, both ways (Rodinia's graphgen)."""
    start, degree, edges = _graph(nodes)
    node = space.array("nodes", 8 * nodes)
    mask, updating, visited = (space.array(name, nodes) for name in ("mask", "updating", "visited"))
    edge, cost = space.array("edges", WORD * len(edges)), space.array("cost", WORD * nodes)
    seen, frontier = np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_)
    seen[0] = frontier[0] = True
    thread = np.arange(-(-nodes // BFS_THREADS) * BFS_THREADS, dtype=np.int64)
    used = thread < nodes
    own = np.where(used, thread, 0)
    while frontier.any():
        active, is_updated = used & frontier[own], np.zeros(nodes, np.bool_)
        steps = [loads(used, mask + own, 1), stores(active, mask + own, 1), loads(active, node + 8 * own, 8)]
        for edge_number in range(int(degree[frontier].max())):
            on = active & (edge_number < degree[own])
            position = np.where(on, start[own] + edge_number, 0)
            other = edges[position]
            new = on & ~seen[other]
            steps += [
                loads(on, edge + WORD * position), loads(on, visited + other, 1), loads(new, cost + WORD * own),
                stores(new, cost + WORD * other), stores(new, updating + other, 1), loads(on, node + 8 * own, 8),
            ]  # fmt: skip
            is_updated[other[new]] = True
        yield kernel("LaneKernel", len(thread), BFS_THREADS, steps)
        reached = used & is_updated[own]
        rest = [stores(reached, array + own, 1) for array in (mask, visited, updating)]
        yield kernel("Kernel2", len(thread), BFS_THREADS, [loads(used, updating + own, 1), *rest])
        seen |= is_updated
        frontier = is_updated


def _graph(nodes: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return the first edge and number of edges of each node, and the target of each edge."""
    number = np.arange(nodes, dtype=np.uint64)
    source = np.repeat(np.arange(nodes, dtype=np.int64), 2 + below(number, 3, 1).astype(np.int64))
    target = below(np.arange(len(source), dtype=np.uint64), nodes, 2).astype(np.int64)
    begins, ends = np.concatenate([source, target]), np.concatenate([target, source])
    degree = np.bincount(begins, minlength=nodes)
    return np.cumsum(degree) - degree, degree, ends[np.argsort(begins, kind="stable")]


PROGRAMS: dict[str, Callable[[ManagedSpace], Iterator[LaneKernel]]] = {
    "bfs": bfs,
    "fdtd": fdtd,
    "hotspot": hotspot,
    "ra": ra,
}
