"""Components of ``capture memory``, tested alone."""

from __future__ import annotations

import socket
import struct
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.capture.memory.addresses import TraceAddresses
from buddysim.capture.memory.derived_kernels import GROUP_LINES, StreamedRange, write_interval
from buddysim.capture.memory.pages import changed_pages, sum_pages
from buddysim.capture.memory.symbols import Symbols
from buddysim.capture.memory.wire import Connection, Truncated
from buddysim.capture.page_sampling import contents_budgets, resample_pages, sampled_pages
from buddysim.capture.snapshot_selection import select_over_run
from buddysim.trace import OP_LOAD, OP_STORE, Provenance, TraceWriter, open_trace, verify_trace
from buddysim.trace.format import PAGE_BYTES


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=9, unique=True), st.integers(1, 9))
def test_selected_snapshots_are_near_equal_distances(positions: list[int], count: int) -> None:
    positions.sort()
    total = positions[-1]
    selected = select_over_run(positions, total, count)
    assert selected == sorted(set(selected))
    assert len(selected) == min(len(positions), count)

    def misses(indices: tuple[int, ...]) -> list[float]:
        return [abs(positions[at] - (number + 1) * total / count) for number, at in enumerate(indices)]

    if len(positions) > count:  # each is the nearest one that leaves enough for the others
        first = misses(tuple(selected))[0]
        assert first == min(misses(rest)[0] for rest in combinations(range(len(positions)), count))


def test_exact_multiples_stay_exact() -> None:
    assert select_over_run(range(5, 205, 5), 200, 20) == list(range(1, 40, 2))


@given(st.integers(1, 1 << 30), st.integers(1, 1 << 22), st.integers(0, 1 << 62))
def test_page_sampling_takes_one_page_of_each_stratum(size: int, sample: int, seed: int) -> None:
    pages = sampled_pages(size, sample, seed).astype(np.int64)
    n_pages = -(-size // PAGE_BYTES)
    stratum = -(-n_pages // max(sample // PAGE_BYTES, 1))
    assert np.array_equal(pages // stratum, np.arange(-(-n_pages // stratum)))
    assert pages[-1] < n_pages


def test_splitmix64() -> None:
    """The generator with seed 1234567 gives the first numbers of its reference implementation."""
    from buddysim.capture import page_sampling

    gamma = 0x9E3779B97F4A7C15
    outputs = [page_sampling._mix((1234567 + number * gamma) % (1 << 64)) for number in range(3)]
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


allocations = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 700), st.booleans()), min_size=1, max_size=12)


@given(allocations)
def test_addresses_are_aligned_apart_and_lasting(requests: list[tuple[int, int, bool]]) -> None:
    addresses, address, live = TraceAddresses(), 4096, {}
    for number, (distance, size, stays) in enumerate(requests):
        address += distance
        base = addresses.base_of(number, address, size)
        assert base % 128 == 0
        assert base > address - 128
        assert all(base + size <= other or other + extent <= base for other, extent in live.values())
        live[number] = (base, size)
        assert addresses.base_of(number, address, size) == base
        address += size
        if not stays:
            live = {key: extent for key, extent in live.items() if key % 2}
            addresses.keep_only(live)


@given(st.integers(1, 5 * PAGE_BYTES), st.randoms(use_true_random=False))
def test_changed_pages_against_the_bytes(size: int, random) -> None:
    before = np.zeros(size, np.uint8)
    after = before.copy()
    for _ in range(random.randint(0, 3)):
        after[random.randrange(size)] = random.randrange(256)
    starts = range(0, size, PAGE_BYTES)
    expected = [bool((before[at : at + PAGE_BYTES] != after[at : at + PAGE_BYTES]).any()) for at in starts]
    assert changed_pages(sum_pages(size, None, before), sum_pages(size, None, after)).tolist() == expected
    assert changed_pages(None, sum_pages(size, None, after)).tolist() == expected


def test_unsampled_page_changes_like_nearest_sampled_page() -> None:
    pages = np.array([1, 4, 9], np.uint32)
    data = np.zeros(3 * PAGE_BYTES, np.uint8)
    data[PAGE_BYTES] = 1  # page 4
    changed = changed_pages(None, sum_pages(10 * PAGE_BYTES, pages, data))
    assert np.flatnonzero(changed).tolist() == [3, 4, 5, 6]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 30_000), st.integers(0, 2**30)), min_size=1, max_size=4))
def test_a_derived_kernel_touches_everything_once(tmp_path_factory, sizes: list[tuple[int, int]]) -> None:
    path: Path = tmp_path_factory.mktemp("kernel") / "kernel.bin"
    touched, base = [], 1 << 20
    with TraceWriter(path, Provenance("test")) as writer:
        for size, flags in sizes:
            writer.add_allocation("some", base, size)
            changed = np.array([bool(flags >> page & 1) for page in range(-(-size // PAGE_BYTES))])
            touched.append(StreamedRange(base, size, changed))
            base += -(-size // 4096) * 4096 + 4096
        write_interval(writer, "interval", touched, 0)
    with open_trace(path) as trace:
        verify_trace(trace)
        (kernel,) = trace.kernels
        read, written, whole = set(), set(), set()
        for chunk in map(trace.decode_chunk, kernel.chunks):
            assert set(chunk.ops["kind"]) <= {OP_LOAD, OP_STORE}
            for op in chunk.ops:
                line = int(chunk.lines[op["first_line"]])
                sectors = {(line >> 8) * 4 + at for at in range(4) if line >> at & 1}
                into = read if op["kind"] == OP_LOAD else written
                assert not sectors & into
                into |= sectors
                whole |= {(line >> 8) * 4 + at for at in range(4) if line >> (4 + at) & 1}
                assert op["use_distance"] <= (0 if op["kind"] == OP_STORE else 3 * GROUP_LINES)
    everything, changed, complete = set(), set(), set()
    for one in touched:
        for byte in range(0, one.bytes, 32):
            sector = (one.base + byte) // 32
            everything.add(sector)
            if one.changed[byte // PAGE_BYTES]:
                changed.add(sector)
                if byte + 32 <= one.bytes:
                    complete.add(sector)
    assert (read, written, whole) == (everything, changed, complete)


def test_a_message_that_ends_early() -> None:
    receiver, sender = socket.socketpair()
    with receiver, sender:
        sender.sendall(struct.pack("<8sII11Q", b"BUDDYMEM", 2, 2, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0) + b"\3\0\0\0ab")
        sender.shutdown(socket.SHUT_WR)
        connection = Connection(receiver)
        assert connection.head().position == 2
        with pytest.raises(Truncated):
            connection.maps()


def test_names_of_addresses_that_nobody_knows() -> None:
    symbols = Symbols("own.so")
    symbols.set_maps("1000-2000 r-xp 00000000 00:00 0 /no/such/file.so\n3000-4000 rw-p 0 00:00 0\n")
    symbols.learn([0x1800, 0x3800, 0x9000])
    assert symbols.call_site([0x1800, 0x3800, 0x9000]) == "file.so+0x800 < 0x3800+0x0 < 0x9000+0x0"
    assert symbols.call_site([]) == "unknown call site"
    assert symbols.demangle(["_ZN5FieldIfEC2Em", "plain"])[1] == "plain"


@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=60), st.integers(0, 3_000_000))
def test_contents_budgets_are_within_the_total(sizes: list[int], budget: int) -> None:
    budgets = contents_budgets(sizes, budget)
    pages = [-(-one // PAGE_BYTES) for one in budgets]
    assert sum(pages) * PAGE_BYTES <= max(budget, 0) or budgets == sizes
    assert all(one <= size for one, size in zip(budgets, sizes, strict=True))
    budget_pages = budget // PAGE_BYTES
    cut = [one for one, size in zip(budgets, sizes, strict=True) if one < size]
    if not cut:
        return
    if budget_pages >= len(sizes):
        assert len(set(cut)) == 1  # all that are cut keep as much
        assert all(size >= cut[0] for one, size in zip(budgets, sizes, strict=True) if one < size)
        doubled = sum(min(2 * cut[0] // PAGE_BYTES, -(-size // PAGE_BYTES)) for size in sizes)
        assert doubled > budget_pages  # and twice that would be too much
    else:
        assert sum(map(bool, budgets)) == budget_pages
        selected = [index for index, one in enumerate(budgets) if one]
        distances = np.diff([-1, *selected, len(sizes)])
        assert budget_pages == 0 or distances.max() <= -(-len(sizes) // budget_pages) + 1  # evenly


@given(st.integers(1, 40), st.integers(1, PAGE_BYTES), st.integers(0, 30 * PAGE_BYTES), st.integers(0, 9))
def test_resampled_pages_are_earlier_samples(whole: int, last: int, keep: int, seed: int) -> None:
    data = np.repeat(np.arange(whole, dtype=np.uint8), PAGE_BYTES)[: (whole - 1) * PAGE_BYTES + last]
    for numbers in (None, np.arange(whole, dtype=np.uint32) * 3):
        pages, resampled = resample_pages(numbers, data, keep, seed)
        if len(data) <= keep:
            assert pages is numbers
            assert resampled is data
            continue
        assert pages is not None
        assert len(pages) <= max(keep // PAGE_BYTES, 1)
        assert bool(len(pages)) == bool(keep)
        assert np.array_equal(np.unique(resampled), pages if numbers is None else pages // 3)
