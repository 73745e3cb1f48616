"""Waiting times are counted at each resource, and counting them changes no other result."""

import pytest

import buddysim
from buddysim.buddy import Targets
from buddysim.machine import Machine
from buddysim.replay.primitives.kinds import Queue
from buddysim.synthetic import make_trace
from tests.replay.bare import run_warps, tiny_machine

# A machine in which the resource named makes requests wait, and what else the workload needs.
BINDING = {
    Queue.L1_PORT: {"l1.mshrs": 2},  # a full L1 delays later accesses
    Queue.L1_MSHR: {"l1.mshrs": 2},
    Queue.L1_STORE: {"l1.mshrs": 1},
    Queue.REQUEST_PORT: {"crossbar.request_bandwidth": "1 B/core_cycle"},
    Queue.REPLY_PORT: {"crossbar.reply_bandwidth": "1 B/core_cycle"},
    Queue.SLICE_PORT: {"l2.bandwidth": "1 B/core_cycle"},
    Queue.L2_MSHR: {"l2.mshrs": 1},
    Queue.COMPRESSOR: {"compression.initiation_interval": "1 us"},
    Queue.SCHEME_QUEUE: {"metadata_cache.lookup_interval": "1 us"},
    Queue.DRAM_READ: {"dram.pseudo_channel_bandwidth": "1 GB/s"},
    Queue.DRAM_WRITE: {"dram.pseudo_channel_bandwidth": "1 GB/s", "dram.model": "simple"},
    Queue.LINK_READ: {"link.bandwidth": "1 GB/s"},
    Queue.LINK_WRITE: {"link.bandwidth": "1 GB/s"},
}


@pytest.fixture(scope="module")
def copy_trace(tmp_path_factory):
    """Return reads and writes of entries that overflow a 4x target, four times the size of the L2."""
    path = tmp_path_factory.mktemp("queueing") / "copy.bin"
    make_trace("stream", path, {"footprint": "1 MiB", "op": "copy", "sizes": "64 B"})
    return path


def replayed(path, queueing=True, **overrides):
    machine = Machine.load("p100-nvlink2").with_overrides({"l2.size": "512 KiB", **overrides})
    with buddysim.open_trace(path) as trace:
        return buddysim.simulate(trace, machine, "buddy", Targets.uniform(trace, "4x"), queueing=queueing).to_dict()


def key_of(queue):
    """The counter of a queue's waits; the scheme's own is the metadata cache's."""
    return f"queueing.{'metadata_port' if queue == Queue.SCHEME_QUEUE else queue.name.lower()}_histogram"


def is_waits(key):
    return key.startswith("queueing.")


def test_counting_waits_changes_nothing_else(copy_trace):
    counted, plain = replayed(copy_trace), replayed(copy_trace, queueing=False)
    assert {key for key in plain if is_waits(key)} == {key_of(queue) for queue in Queue}
    assert all(value is None for key, value in plain.items() if is_waits(key))
    assert all(len(value) == 40 for key, value in counted.items() if is_waits(key))
    same = [key for key in plain if not is_waits(key)]
    assert {key: counted[key] for key in same} == {key: plain[key] for key in same}


@pytest.mark.parametrize("queue", Queue)
def test_requests_wait_where_the_machine_makes_them(copy_trace, queue):
    key = key_of(queue)
    idle, busy = replayed(copy_trace), replayed(copy_trace, **BINDING[queue])
    waited = [sum(result[key][16:]) for result in (idle, busy)]  # at least 66 ns
    assert waited[1] > waited[0]


def test_every_request_is_counted_once(copy_trace):
    result = replayed(copy_trace)
    counts = {queue: sum(result[key_of(queue)]) for queue in Queue}
    assert counts[Queue.L1_PORT] == result["line_accesses"]
    assert counts[Queue.L1_MSHR] == counts[Queue.REPLY_PORT] == sum(result["latency.l1_miss_histogram"])
    assert counts[Queue.L1_STORE] == result["line_accesses"] - result["l1.line_accesses"]
    assert counts[Queue.REQUEST_PORT] == result["l2.line_accesses"]
    hops = counts[Queue.SLICE_PORT] - result["l2.line_accesses"]
    assert 0 < hops <= 3 * result["metadata.accesses"]  # there and back, and back for a fill that speculates
    assert counts[Queue.L2_MSHR] == result["l2.fills"]
    assert counts[Queue.SCHEME_QUEUE] == result["metadata.accesses"]
    assert counts[Queue.COMPRESSOR] >= result["l2.fills"] + result["l2.writebacks"]
    assert counts[Queue.DRAM_READ] >= result["l2.fills"]
    assert counts[Queue.LINK_READ] >= result["buddy.fills"] > 0
    assert counts[Queue.LINK_WRITE] == result["buddy.fills"] + result["buddy.writebacks"]  # a read's requests


def test_waits_are_the_time_between_arrival_and_grant():
    """Lines of one instruction enter their L1 a cycle (769 ps) apart, so they wait in bins 0, 9, 10 and 11."""
    count, _ = run_warps(tiny_machine(), [[(0, [(entry, 1, 0) for entry in range(4)])]], queueing=True)
    assert {bin: n for bin, n in enumerate(count["waits"][Queue.L1_PORT]) if n} == {0: 1, 9: 1, 10: 1, 11: 1}


def test_reads_of_device_memory_wait_for_their_row_and_for_what_is_before_them():
    machine = tiny_machine(l1__enabled=False, dram__load_to_use="300 ns")
    row = machine.ps(machine.dram.timing.tRCD).bit_length() - 1
    for sectors, expected in ((1, {row: 1}), (15, {row: 1})):
        count, _ = run_warps(machine, [[(0, [(0, sectors, 0)])]], queueing=True)
        assert {bin: n for bin, n in enumerate(count["waits"][Queue.DRAM_READ]) if n} == expected
    # The second read finds the row open, an instant after its own grant.
    count, _ = run_warps(machine, [[(0, [(0, 1, 0)]), (0, [(0, 2, 0)])]], queueing=True)
    waits = count["waits"][Queue.DRAM_READ]
    assert (sum(waits), sum(waits[row:])) == (2, 1)
