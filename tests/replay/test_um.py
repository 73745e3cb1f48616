"""Unified Memory: cost of a fault, prefetched pages, evicted pages."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buddysim
import buddysim.trace as bt
from buddysim.replay.parameters import engine_numbers
from buddysim.replay.primitives.kinds import Placement, Traffic
from buddysim.replay.schemes.buddy.numbers import metadata_numbers
from tests.reference.replay.memory_path import RefMemory
from tests.reference.replay.schemes.ref_um import RefPages
from tests.replay.bare import link_read_ps, run_warps, tiny_machine
from tests.replay.events import BASE, load_block, provenance
from tests.trace.builders import records

PAGE = 512  # entries of 64 KiB
PAGES = 8
REGIONS = [(0, PAGES * PAGE, 0, 4)]


def machine(**overrides):
    """Return a machine on which half of the eight pages fit and nothing is prefetched, unless overridden."""
    return tiny_machine(**{"um__va_block_size": "64 KiB", "dram__capacity": "1 GiB", **overrides})


def loads(pages):
    """Return dependent loads, each of a line that no cache holds."""
    return [(0, [(page * PAGE + number, 1, 0)]) for number, page in enumerate(pages)]


def run(ops, **overrides):
    """Run one warp on eight pages, half of which fit; kinds of `ops`: 0 load, 1 store, 2 atomic."""
    return run_warps(machine(**overrides), [ops], "unified-memory", regions=REGIONS)[0]


def counted(pages, *, regions=REGIONS, **overrides):
    """Return faults, prefetched and evicted pages of one warp, and all counters."""
    count, _ = run_warps(machine(**overrides), [loads(pages)], "unified-memory", regions=regions)
    pages_counted = tuple(
        count["scheme"][f"um.{name}"] for name in ("page_faults", "pages_prefetched", "pages_evicted")
    )
    return pages_counted, count


def page_ps(m):
    """Return the time of one page on the link, and the rest of a read over it (ps)."""
    numbers = engine_numbers(m, Fraction(1))
    return int(64 * 1024 * 10**12 / numbers["link_bytes_per_s"]), link_read_ps(m)


def fault_ps(m):
    """Return the time from a fault to the page's arrival on an idle link (ps)."""
    return m.ps(m.um.fault_batch_latency) + sum(page_ps(m))


@pytest.mark.parametrize("latency", ["20 us", "30 us"])
@pytest.mark.parametrize("bandwidth", ["75 GB/s", "150 GB/s"])
def test_a_fault_costs_its_latency_and_the_page_and_then_the_access(latency, bandwidth):
    settings_ = {"um__fault_batch_latency": latency, "link__bandwidth": bandwidth}
    m = machine(**settings_)
    counts, resident = counted([0], **settings_)
    assert counts == (0, 0, 0)
    assert resident["now_ps"] == 769 + m.ps(m.dram.load_to_use)
    counts, faulted = counted([5], **settings_)
    assert counts == (1, 0, 1)
    transfer, around = page_ps(m)
    expected = resident["now_ps"] + m.ps(m.um.fault_batch_latency) + around + transfer
    assert faulted["now_ps"] == pytest.approx(expected, abs=1)
    assert faulted["scheme"]["link.migration_in_bytes"] == faulted["scheme"]["link.migration_out_bytes"] == 64 * 1024
    assert faulted["device"][Traffic.DEMAND] == 1


def test_resident_pages_cost_what_ideal_costs():
    warp = [loads([0, 1, 2, 3] * 20)]
    times = [run_warps(machine(), warp, scheme, regions=REGIONS)[0]["now_ps"] for scheme in ("unified-memory", "ideal")]
    assert times[0] == times[1]


@pytest.mark.parametrize("kind", [1, 2])
def test_a_store_or_atomic_to_an_absent_page_faults_when_it_comes(kind):
    """The access takes longer than on a resident page by the time of a fault; no line is written back here."""
    resident, absent = (run([(kind, [(page * PAGE, 1, 1)])]) for page in (0, 5))
    assert resident["scheme"]["um.page_faults"] == 0
    assert absent["scheme"]["um.page_faults"] == absent["scheme"]["um.pages_evicted"] == 1
    assert absent["dirty_left"] == 1
    assert absent["now_ps"] == pytest.approx(resident["now_ps"] + fault_ps(machine()), abs=1)


def test_a_store_that_faults_does_not_hold_its_warp():
    """50 dependent loads of a resident page continue meanwhile; the run ends when the absent page arrives."""
    resident, absent = ([(1, [(page * PAGE, 15, 15)]), *loads([1] * 50)] for page in (0, 5))
    alone = run(absent[:1])["now_ps"]
    assert run(resident)["now_ps"] > 10_000_000
    assert run(absent)["now_ps"] == alone


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_what_comes_while_a_page_is_on_its_way_waits_for_it(kind):
    """Accesses to lines of one absent page share one fault and one migration."""
    first = [(1, [(5 * PAGE, 15, 15)])]
    others = [(kind, [(5 * PAGE + number, 1, 1)]) for number in (0, 1, 2)]
    alone, together = run(first), run(first + others)
    assert together["scheme"]["um.page_faults"] == 1
    assert together["scheme"]["link.migration_in_bytes"] == 64 * 1024
    assert alone["now_ps"] <= together["now_ps"] <= alone["now_ps"] + 2_000_000


@pytest.mark.parametrize("l1", [True, False])
def test_no_cache_answers_for_an_evicted_page(l1):
    """After four misses in other pages, page and line are evicted, although the caches have free ways."""
    again = [(0, [(0, 1, 0)])]
    keep = {"l1__enabled": l1, "l1__size": "16 KiB", "l1__ways": 16}
    stays, gone = (run(again + loads(others) + again, **keep) for others in ([1, 2, 3], [4, 5, 6, 7]))
    assert (stays["l1_hits"], stays["l2_read_hits"], stays["l2_read_misses"]) == ((1, 0, 4) if l1 else (0, 1, 4))
    assert (gone["l1_hits"], gone["l2_read_hits"], gone["l2_read_misses"]) == (0, 0, 6)
    assert gone["scheme"]["um.page_faults"] == 5


def test_dirty_lines_leave_with_their_page_and_do_not_bring_it_back():
    """Page 0 is written and evicted; then so many lines are read that the L2 of 64 lines is replaced."""
    stores = [(1, [(number, 3, 3)]) for number in range(8)]
    readers = [(0, [(4 * PAGE + number, 1, 0)]) for number in range(256)]
    written = run(stores + loads([1, 2, 3, 4]) + readers)
    assert written["scheme"]["um.page_faults"] == written["scheme"]["um.pages_evicted"] == 1
    assert written["scheme"]["um.evicted_dirty_sectors"] == written["writeback_sectors"] == 16
    assert (written["writebacks"], written["dirty_left"]) == (8, 0)
    assert written["device"][Traffic.WRITEBACK] == 0  # the page's transfer has them
    assert written["scheme"]["link.migration_out_bytes"] == sum(written["link_write"]) == 64 * 1024
    resident = run(stores + loads([1, 2, 3, 0]) + [(0, [(PAGE + number, 1, 0)]) for number in range(256)])
    assert resident["device"][Traffic.WRITEBACK] == resident["writeback_sectors"] == 16


def test_the_page_accessed_least_recently_is_evicted():
    assert counted([0, 4, 0])[0] == (1, 0, 1)  # 1 was evicted, as 0 had just been accessed
    assert counted([4, 0])[0] == (2, 0, 2)  # 0 was evicted
    assert counted([4, 5, 6, 7])[0] == (4, 0, 4)
    assert counted([4, 5, 6, 7] * 3)[0] == (4, 0, 4)
    assert counted([*range(8)] * 3)[0] == (20, 0, 20)  # a cycle longer than what fits: all but the first four miss


@pytest.mark.parametrize(("l1", "faults"), [(False, 1), (True, 2)])
def test_hits_in_the_l2_are_accesses_hits_in_the_l1_are_not(l1, faults):
    """The first line is loaded repeatedly: if the L2 sees this, page 4 replaces page 1 instead of page 0."""
    ops = [(0, [(0, 1, 0)]), *loads([1, 2, 3]), (0, [(0, 1, 0)]), *loads([4]), (0, [(0, 2, 0)])]
    assert run(ops, l1__enabled=l1, l1__size="4 KiB")["scheme"]["um.page_faults"] == faults


@pytest.mark.parametrize(("fraction", "fit"), [(0.9, 2), (0.85, 3), (0.5, 10), (0.0, 20)])
def test_the_fraction_that_does_not_fit_is_the_decimal_number(fraction, fit):
    """0.9 is no binary fraction: of 20 pages, the nearest one would leave less than two."""
    regions = [(0, 20 * PAGE, 0, 4)]
    assert counted(range(fit), regions=regions, um__oversubscription=fraction)[0] == (0, 0, 0)
    if fit < 20:
        assert counted([fit], regions=regions, um__oversubscription=fraction)[0] == (1, 0, 1)


def test_more_than_half_of_a_subtree_prefetches_the_rest():
    """In a block of four pages, the third fault prefetches the fourth page."""
    assert counted([4, 5], um__va_block_size="256 KiB")[0] == (2, 0, 2)
    assert counted([4, 5, 6, 7], um__va_block_size="256 KiB")[0] == (3, 1, 4)
    assert counted([4, 6, 5], um__va_block_size="256 KiB")[0] == (3, 1, 4)


def test_a_page_evicted_for_a_prefetched_one_is_not_brought_again():
    """Page 4 is the fifth of a subtree of eight: 5, 6 and 7 are prefetched, and 0 to 3 are evicted."""
    assert counted([0, 1, 2, 3, 4], um__va_block_size="512 KiB")[0] == (1, 3, 4)
    assert counted([0, 1, 2, 3, 4, 7, 6, 5], um__va_block_size="512 KiB")[0] == (1, 3, 4)


def test_pages_without_an_allocation_never_migrate():
    """Pages 0, 1 and 7 have no allocation: they are not resident, not prefetched, and take no capacity."""
    regions = [(2 * PAGE, 7 * PAGE, 0, 4)]
    settings_ = {"um__va_block_size": "256 KiB", "um__oversubscription": 0.5}
    # 7 pages of the address space count here, half of which fit: 2, 3 and 4 are resident.
    counts, count = counted([2, 3, 4, 5, 6], regions=regions, **settings_)
    assert counts == (2, 0, 2)  # with 4 to 6 resident, the fourth of the block would be prefetched, but is empty
    assert count["scheme"]["link.migration_in_bytes"] == 2 * 64 * 1024


def test_faults_that_wait_are_handled_together():
    """The first fault begins a batch; later ones form the next, or one batch each if a batch holds one."""
    warps = [loads([page]) for page in (4, 5, 6)]
    for batch, batches in ((256, 2), (1, 3)):
        m = machine(um__max_batch_faults=batch)
        count, _ = run_warps(m, warps, "unified-memory", regions=REGIONS)
        transfer, _ = page_ps(m)
        least = batches * m.ps(m.um.fault_batch_latency) + transfer
        assert count["scheme"]["um.page_faults"] == 3
        assert least <= count["now_ps"] <= least + 2 * transfer + 2_000_000


def test_a_copy_leaves_lines_of_resident_pages_only(tmp_path):
    """Copies write eight lines of resident page 1 and of absent page 6, which faults when it is read."""
    starts = [BASE + page * 64 * 1024 for page in (1, 6)]
    with bt.TraceWriter(tmp_path / "t.bin", provenance()) as writer:
        writer.add_allocation("data", BASE, PAGES * PAGE * 128)
        for start in starts:
            writer.memcpy("htod", start, 8 * 128)
        writer.begin_kernel("reads", (1, 1, 1), (32, 1, 1))
        writer.add_blocks(*records([load_block([start + 128 * i for start in starts for i in range(8)])]))
        writer.end_kernel()
    m = buddysim.Machine.load("p100-nvlink2").with_overrides({"um.va_block_size": "64 KiB", "l1.enabled": False})
    counters = buddysim.simulate(tmp_path / "t.bin", m, "unified-memory").counters
    assert (counters["l2.sector_hits"], counters["l2.read_sector_misses"]) == (8, 8)
    assert counters["um.page_faults"] == 1


FRAMES = {"um__eviction_granularity": "128 KiB"}  # of two pages; two frames fit


def test_a_frame_is_taken_and_left_whole():
    """Frames 2 and 3 replace 0 and 1, each with one page; its other page needs no further frame."""
    assert counted([4], **FRAMES)[0] == (1, 0, 2)
    assert counted([4, 5, 6, 7], **FRAMES)[0] == (4, 0, 4)
    assert counted([4, 6, 5, 0], **FRAMES)[0] == (4, 0, 5)  # 0 needs a frame: 6, though 4 came before it
    assert counted([4, 6, 5, 0], **FRAMES, um__eviction_order="lru_migration")[0] == (4, 0, 5)


def test_by_fault_an_access_does_not_keep_a_frame():
    """Accesses to pages 4, 6, 4: page 0 replaces frame 3 by access order, and frame 2 by migration order."""
    for order, faults in (("lru_access", 3), ("lru_migration", 4)):
        assert counted([4, 6, 4, 0, 4], **FRAMES, um__eviction_order=order)[0][0] == faults


def test_pages_begin_on_the_host():
    assert counted([0, 1, 2, 3], um__initial_location="host")[0] == (4, 0, 0)
    assert counted([0, 1, 2, 3, 4, 0], um__initial_location="host")[0] == (6, 0, 2)


@pytest.mark.parametrize(("capacity", "evicted"), [("256 KiB", 4), ("300 KiB", 4), ("384 KiB", 2), ("512 KiB", 0)])
def test_a_capacity_counts_in_whole_frames(capacity, evicted):
    """Eight pages are read one after the other, in frames of two."""
    counts = counted(range(8), um__initial_location="host", um__capacity=capacity, **FRAMES)[0]
    assert counts == (8, 0, evicted)


def test_in_series_an_eviction_comes_before_the_page_and_the_next_batch_after_it():
    """Two dependent loads evict a page each; serialized, each takes the time of a page on the link longer."""
    overlapping, serial = (counted([4, 5], um__serialize_transfers=serial)[1]["now_ps"] for serial in (False, True))
    transfer, _ = page_ps(machine())
    assert serial - overlapping == pytest.approx(2 * transfer, abs=4)


def test_in_series_the_next_batch_waits_for_the_pages_of_the_one_before():
    """The first of three warps opens a batch; the others share the next, whose pages follow one another."""
    warps = [loads([page]) for page in (4, 5, 6)]
    m = machine(um__serialize_transfers=True, um__initial_location="host")
    count, _ = run_warps(m, warps, "unified-memory", regions=REGIONS)
    transfer, around = page_ps(m)
    least = 2 * m.ps(m.um.fault_batch_latency) + 3 * (transfer + around)
    assert least <= count["now_ps"] <= least + 2_000_000


@pytest.mark.parametrize("frame", ["32 KiB", "96 KiB", "1 MiB"])
def test_a_frame_is_a_page_or_holds_a_prefetch_tree(frame):
    with pytest.raises(buddysim.BuddysimError, match="eviction_granularity"):
        machine(um__va_block_size="2 MiB", um__eviction_granularity=frame)


lines = st.tuples(st.integers(0, 15), st.integers(0, 3), st.integers(1, 15))  # page, line of it, sectors
accesses = st.lists(st.tuples(st.sampled_from([0, 0, 1, 2]), st.lists(lines, min_size=1, max_size=3)), max_size=120)


@given(
    accesses=accesses,
    fraction=st.sampled_from([0.1, 0.5, 0.75, 0.9]),
    block=st.sampled_from([1, 2, 8, 16]),
    host=st.tuples(st.integers(1, 500), st.integers(1, 500)).map(sorted),
    l1=st.booleans(),
)
@settings(deadline=None, max_examples=150)
def test_every_access_does_what_the_reference_does(accesses, fraction, block, host, l1):
    """The host's allocation begins and ends inside pages of 4 KiB (32 entries), or is a part of one."""
    page, entries = 32, 16 * 32
    first, end = host[0], host[1] + 1
    regions = [(0, first, 0, 4), (first, end, Placement.HOST, 4), (end, entries, 0, 4)]
    m = machine(
        um__page_size="4 KiB",
        um__va_block_size=f"{4 * block} KiB",
        um__oversubscription=fraction,
        l1__enabled=l1,
        l2__size="4 KiB",
    )
    ops = [
        (kind, [(n * page + 7 * k, mask, mask if kind == 1 else 0) for n, k, mask in lines]) for kind, lines in accesses
    ]
    fast, _ = run_warps(m, [ops], "unified-memory", regions=regions)
    managed = [n for n in range(16) if n * page < first or (n + 1) * page > end]
    capacity = max(1, int(entries * (1 - Fraction(str(fraction)))) // page)
    reference = RefPages(managed, capacity, block)
    numbers = engine_numbers(m, Fraction(1)) | metadata_numbers(m)
    naive = RefMemory(numbers, regions, [0] * entries, "unified-memory", reference, page)
    for kind, touched in ops:
        for entry, mask, _ in touched:
            sectors = {s for s in range(4) if mask >> s & 1}
            if kind == 0:
                naive.load(entry, sectors)
            elif kind == 1:
                naive.store(entry, sectors, sectors)
            else:
                naive.atomic(entry, sectors)
    migrations = (reference.faults, reference.prefetched, reference.evicted)
    assert (
        tuple(fast["scheme"][f"um.{key}"] for key in ("page_faults", "pages_prefetched", "pages_evicted")) == migrations
    )
    for key in (
        "load_sectors",
        "store_sectors",
        "l2_read_misses",
        "fills",
        "fill_sectors",
        "writebacks",
        "writeback_sectors",
    ):
        assert fast[key] == naive.count[key], key
    assert fast["l1_hits"] + fast["l1_mshr_merges"] == naive.count["l1_found"]
    assert fast["l2_read_hits"] + fast["l2_read_mshr_merges"] == naive.count["l2_found"]
    assert fast["device"][Traffic.DEMAND] == naive.count["device.demand"]
    assert fast["device"][Traffic.WRITEBACK] == naive.count["device.writeback"]
    assert fast["link_read"][Traffic.DEMAND] == naive.count["link.demand"]
    assert fast["link_write"][Traffic.WRITEBACK] == naive.count["link.writeback"]
    assert fast["scheme"]["link.migration_in_bytes"] == 4096 * (reference.faults + reference.prefetched)
    assert fast["scheme"]["link.migration_out_bytes"] == 4096 * reference.evicted
    written_back = sum(naive.count[f"{memory}.writeback"] // size for memory, size in (("device", 1), ("link", 32)))
    assert fast["writeback_sectors"] == written_back + fast["scheme"]["um.evicted_dirty_sectors"]
    assert fast["sectors_made_dirty"] == fast["writeback_sectors"] + fast["dirty_left"]
