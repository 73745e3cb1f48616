"""Lanes form warps by control flow: the runtime equals the reference model, and cases computed by hand."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.trace.records import (
    ATOMIC_CONFLICTS_SHIFT,
    BANK_WORDS_SHIFT,
    OP_ATOMIC,
    OP_BARRIER,
    OP_DTYPE,
    OP_LOAD,
    OP_STORE,
    WARP_DTYPE,
)
from tests.reference.capture.opencl import ref_warp
from tests.reference.capture.opencl.ref_warp import (
    N_UNITS,
    USED_ELSEWHERE,
    RefAccessSite,
    RefBasicBlock,
    RefComputeGap,
    RefControlFlow,
    RefLane,
    RefUse,
)
from tests.reference.trace.ref_coalesce import coalesce_op

MEMORY = range(1 << 12, 1 << 20)
CAPACITY = 1 << 16


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    from buddysim.capture.opencl.toolchain import find_toolchain, runtime_library

    try:
        return ctypes.CDLL(str(runtime_library(find_toolchain())))
    except BuddysimError as error:
        pytest.skip(str(error))


def fast(
    library: ctypes.CDLL, kernel: RefControlFlow, lanes: list[RefLane], end: int = MEMORY.stop
) -> tuple[Any, Any, Any]:
    """Return (ops, lines, the warp's record) of the compiled runtime."""

    def flat(parts: list[list[int]], dtype: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        counts = np.array([len(part) for part in parts], np.uint32)
        return counts, np.array([value for part in parts for value in part] or [0], dtype)

    table = np.array(ref_warp.words(kernel), np.uint32)
    n_blocks, blocks = flat([lane.blocks for lane in lanes], np.uint32)
    n_accesses, accesses = flat([lane.accesses for lane in lanes], np.uint64)
    warp, ops, lines = np.zeros(1, WARP_DTYPE), np.zeros(CAPACITY, OP_DTYPE), np.zeros(CAPACITY, np.uint64)
    tables = [array.ctypes.data_as(ctypes.c_void_p) for array in (table, n_blocks, blocks, n_accesses, accesses)]
    out = [array.ctypes.data_as(ctypes.c_void_p) for array in (warp, ops, lines)]
    n = library.capture_warp_from_logs(tables[0], len(lanes), *tables[1:], ctypes.c_uint64(end), *out, CAPACITY)
    assert n >= 0
    ops = ops[:n]
    return ops, lines[: int(ops["n_lines"].sum())], warp[0]


def compare(library: ctypes.CDLL, kernel: RefControlFlow, lanes: list[RefLane]) -> list[ref_warp.RefWarpOp]:
    expected, tail = ref_warp.regroup(kernel, lanes, MEMORY)
    ops, lines, warp = fast(library, kernel, lanes)
    at = 0
    for op, want in zip(ops, expected, strict=True):
        assert (op["kind"], op["bytes_per_lane"], op["flags"]) == (
            want.kind,
            want.bytes if want.kind != OP_BARRIER else 0,
            want.flags,
        )
        assert (op["gap_instructions"], op["critical_path_cycles"], op["critical_path_hops"]) == (
            want.before.instructions,
            want.before.cycles,
            want.before.hops,
        )
        assert op["unit_busy_slots"] == want.before.unit_busy_slots
        assert (op["use_distance"], op["use_cycles"], op["use_hops"]) == want.use
        n = int(op["n_lines"])
        expected_lines = coalesce_op(want.addresses, want.bytes, want.kind == OP_STORE) if n else []
        assert lines[at : at + n].tolist() == expected_lines
        at += n
    assert (warp["tail_gap_instructions"], warp["tail_critical_path_cycles"], warp["tail_critical_path_hops"]) == (
        tail.instructions,
        tail.cycles,
        tail.hops,
    )
    assert warp["tail_unit_busy_slots"] == tail.tail_unit_busy_slots
    return expected


def finished(kernel: RefControlFlow) -> RefControlFlow:
    """Add reconvergence points and logged blocks, as the compiler pass does."""
    targets = [block.targets for block in kernel.blocks]
    for block, join in zip(kernel.blocks, ref_warp.joins(targets), strict=True):
        block.join = join
        if len(block.targets) > 1:
            for target in block.targets:
                kernel.blocks[target].logged = True
    return kernel


@st.composite
def kernels(draw: st.DrawFn) -> RefControlFlow:
    """Generate a control flow in which every block reaches the end."""
    n = draw(st.integers(1, 9))
    small = st.integers(0, 5)
    busy = st.lists(st.integers(0, 20), min_size=N_UNITS, max_size=N_UNITS)
    gap = st.builds(RefComputeGap, small, small, small, busy)
    sites: list[RefAccessSite] = []
    blocks: list[RefBasicBlock] = []
    for number in range(n):
        targets: list[int] = []
        if number < n - 1:
            onward = draw(st.integers(number + 1, n - 1))
            others = draw(st.lists(st.integers(0, n - 1), max_size=2))
            targets = list(dict.fromkeys(draw(st.permutations([onward, *others]))))
        mine = []
        for _ in range(draw(st.integers(0, 2))):
            kind = draw(st.sampled_from([OP_LOAD, OP_STORE, OP_ATOMIC]))
            use = (
                draw(st.sampled_from([(0, 0, 0), (2, 1, 1), (USED_ELSEWHERE, 0, 0)])) if kind != OP_STORE else (0, 0, 0)
            )
            mine.append(len(sites))
            sites.append(RefAccessSite(kind, draw(st.sampled_from([1, 4, 16])), 0, draw(gap), use))
        blocks.append(RefBasicBlock(targets, mine, draw(gap)))
    for block in blocks:
        for site, description in enumerate(sites):
            if description.use[0] == USED_ELSEWHERE and draw(st.integers(0, 3)) == 0:
                block.uses.append(RefUse(site, draw(small), draw(small), draw(small)))
    return finished(RefControlFlow(sites, blocks))


@st.composite
def walks(draw: st.DrawFn) -> tuple[RefControlFlow, list[RefLane]]:
    """Generate logs of lanes with random, finite paths through a kernel."""
    kernel = draw(kernels())
    lanes = []
    for _ in range(draw(st.sampled_from([1, 2, 3, 5, 32]))):
        rng = draw(st.randoms(use_true_random=False))
        lane, block, left = RefLane([], []), 0, 20
        while True:
            description = kernel.blocks[block]
            for site in description.sites:
                outside = rng.random() < 0.1
                n = kernel.sites[site].bytes
                lane.accesses.append(64 if outside else rng.randrange(MEMORY.start, MEMORY.start + 4096, n))
            if not description.targets:
                break
            left -= 1
            block = rng.choice(description.targets) if left > 0 else max(description.targets)
            if kernel.blocks[block].logged:
                lane.blocks.append(block)
        lanes.append(lane)
    return kernel, lanes


@settings(deadline=None, max_examples=60)
@given(walks())
def test_runtime_agrees_with_reference_model(library: ctypes.CDLL, walk: tuple[RefControlFlow, list[RefLane]]) -> None:
    compare(library, *walk)


@pytest.mark.slow
@settings(deadline=None, max_examples=500)
@given(walks())
def test_runtime_agrees_on_many_walks(library: ctypes.CDLL, walk: tuple[RefControlFlow, list[RefLane]]) -> None:
    compare(library, *walk)


def addresses(ops: list[ref_warp.RefWarpOp]) -> list[list[int]]:
    return [[(address - MEMORY.start) // 4 for address in op.addresses] for op in ops]


def at(*words: int) -> list[int]:
    return [MEMORY.start + 4 * word for word in words]


def test_addresses_beyond_four_gigabytes(library: ctypes.CDLL) -> None:
    kernel = finished(RefControlFlow([RefAccessSite(OP_STORE, 4)], [RefBasicBlock([], [0])]))
    far = (5 << 30) + 64
    _, lines, _ = fast(library, kernel, [RefLane([], [far]), RefLane([], [MEMORY.start])], end=6 << 30)
    assert [int(line) >> 8 << 7 for line in lines] == [5 << 30, MEMORY.start]


def test_lanes_that_skip_an_access_in_a_loop_stay_in_their_round(library: ctypes.CDLL) -> None:
    # 0 -> 1 (head) -> 2 (access) -> 3 (latch) -> 1 or 4; 1 -> 3 skips. Lane 0 accesses in rounds 0 and 1, lane 1 only
    # in round 1: by occurrence, lane 1's first access would join lane 0's first.
    blocks = [
        RefBasicBlock([1]),
        RefBasicBlock([2, 3]),
        RefBasicBlock([3], [0]),
        RefBasicBlock([1, 4]),
        RefBasicBlock([]),
    ]
    kernel = finished(RefControlFlow([RefAccessSite(OP_LOAD, 4)], blocks))
    lanes = [RefLane([1, 2, 3, 1, 2, 3, 4], at(0, 1)), RefLane([1, 3, 1, 2, 3, 4], at(101))]
    lanes[0].blocks = [1, 2, 3, 1, 2, 3, 4]
    lanes[1].blocks = [1, 3, 1, 2, 3, 4]
    assert addresses(compare(library, kernel, lanes)) == [[0], [1, 101]]


def test_both_sides_of_a_branch_then_reconverged_lanes(library: ctypes.CDLL) -> None:
    sites = [RefAccessSite(OP_LOAD, 4), RefAccessSite(OP_LOAD, 4), RefAccessSite(OP_STORE, 4)]
    kernel = finished(
        RefControlFlow(
            sites, [RefBasicBlock([1, 2]), RefBasicBlock([3], [0]), RefBasicBlock([3], [1]), RefBasicBlock([], [2])]
        )
    )
    lanes = [RefLane([1, 3], at(0, 10)), RefLane([2, 3], at(51, 11)), RefLane([1, 3], at(2, 12))]
    for lane in lanes:
        lane.blocks = lane.blocks[: 1 + kernel.blocks[3].logged]
    assert addresses(compare(library, kernel, lanes)) == [[0, 2], [51], [10, 11, 12]]


def test_lanes_that_leave_a_loop_early_wait_after_the_loop(library: ctypes.CDLL) -> None:
    # 0 -> 1 (access, loops or leaves) -> 2 (access)
    kernel = finished(
        RefControlFlow(
            [RefAccessSite(OP_LOAD, 4), RefAccessSite(OP_STORE, 4)],
            [RefBasicBlock([1]), RefBasicBlock([1, 2], [0]), RefBasicBlock([], [1])],
        )
    )
    lanes = [RefLane([1, 2], at(0, 90)), RefLane([1, 1, 1, 2], at(1, 2, 3, 91)), RefLane([1, 1, 2], at(4, 5, 92))]
    assert addresses(compare(library, kernel, lanes)) == [[0, 1, 4], [2, 5], [3], [90, 91, 92]]


def test_busiest_unit_limits_the_scheduler(library: ctypes.CDLL) -> None:
    # Three instructions and the load make four slots. Both compute gaps together: 10 cycles of one unit, 7 of another.
    sites = [
        RefAccessSite(OP_LOAD, 4, 0, RefComputeGap(2, busy=[4, 6, 0, 0, 0, 0])),
        RefAccessSite(OP_STORE, 4, 0, RefComputeGap(1, busy=[2] * 6)),
    ]
    blocks = [RefBasicBlock([1], [], RefComputeGap(1, busy=[6, 1, 0, 0, 0, 0])), RefBasicBlock([], sites=[0, 1])]
    ops = compare(library, finished(RefControlFlow(sites, blocks)), [RefLane([], at(0, 1))])
    assert [op.before.unit_busy_slots for op in ops] == [10 - 4, 0]


def test_a_busy_unit_at_the_end(library: ctypes.CDLL) -> None:
    """The tail holds unit-busy slots beyond 16 bits: 70,000 cycles, less two of the instructions."""
    block = RefBasicBlock([], [0], RefComputeGap(2, busy=[3, 70_000, 0, 0, 0, 0]))
    kernel = finished(RefControlFlow([RefAccessSite(OP_STORE, 4)], [block]))
    compare(library, kernel, [RefLane([], at(0))])
    assert fast(library, kernel, [RefLane([], at(0))])[2]["tail_unit_busy_slots"] == 70_000 - 2


def test_lanes_of_an_atomic_that_meet_at_a_word(library: ctypes.CDLL) -> None:
    kernel = finished(
        RefControlFlow([RefAccessSite(OP_ATOMIC, 4), RefAccessSite(OP_LOAD, 4)], [RefBasicBlock([], [0, 1])])
    )
    for words, atomic_conflicts in (([0] * 32, 31), (list(range(32)), 0), ([0, 1, 0, 0], 2), ([0, 8, 0, 8], 2)):
        lanes = [RefLane([], at(word, word)) for word in words]
        compare(library, kernel, lanes)
        assert [int(flags) >> ATOMIC_CONFLICTS_SHIFT for flags in fast(library, kernel, lanes)[0]["flags"]] == [
            atomic_conflicts,
            0,
        ]


def test_words_of_loads_and_stores(library: ctypes.CDLL) -> None:
    """Return the cycles of the banks beyond those without conflicts, modulo 32."""
    kernel = finished(
        RefControlFlow([RefAccessSite(OP_LOAD, 4), RefAccessSite(OP_STORE, 8)], [RefBasicBlock([], [0, 1])])
    )
    for stride, codes in ((1, [0, 0]), (3, [(1 - 3) % 32, (2 - 6) % 32]), (0, [0, 1]), (32, [24, 24])):
        lanes = [RefLane([], at(stride * lane, 2 * stride * lane)) for lane in range(32)]
        compare(library, kernel, lanes)
        assert [int(flags) >> BANK_WORDS_SHIFT for flags in fast(library, kernel, lanes)[0]["flags"]] == codes


def test_value_used_in_the_next_iteration(library: ctypes.CDLL) -> None:
    # One load per round of ten instructions, used two instructions into the next round or after the loop.
    site = RefAccessSite(OP_LOAD, 4, 0, RefComputeGap(4, 8, 4), (USED_ELSEWHERE, 0, 0))
    loop = RefBasicBlock([1, 2], [0], RefComputeGap(5, 10, 5), [RefUse(0, 2, 4, 2)])
    kernel = finished(
        RefControlFlow(
            [site],
            [
                RefBasicBlock([1], [], RefComputeGap(3, 6, 3)),
                loop,
                RefBasicBlock([], [], RefComputeGap(1), [RefUse(0, 0, 0, 0)]),
            ],
        )
    )
    ops = compare(library, kernel, [RefLane([1, 1, 2], at(0, 1))])
    assert [op.use for op in ops] == [(1 + 5 + 2, 10 + 4, 5 + 2), (6, 10, 5)]
    assert [op.before.instructions for op in ops] == [3 + 4, 5 + 4]
