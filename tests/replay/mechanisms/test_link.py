"""The link (docs/explanation/replay-model.md, Link, host memory, Unified Memory). A transfer of 32 B takes 2 ns; 198
ns are the way there and back."""

from fractions import Fraction

import pytest

from buddysim.contracts.trials import carried_bytes
from buddysim.replay.parameters import engine_numbers
from tests.replay.mechanisms.hand import BUCKET, NS, load, machine, store, time_of

M = machine()


def test_a_read_takes_the_link_s_latency():
    assert time_of(M, [load(0)], scheme="pinned-host") == (1 + 300) * NS
    assert time_of(M, [load((0, 15))], scheme="pinned-host") == (1 + 300 + 3 * 2 + 3) * NS


@pytest.mark.parametrize(("packet", "headers"), [("32 B", 4), ("64 B", 2), ("128 B", 1)])
def test_headers_take_the_link_s_time(packet, headers):
    """The latency contains one header of 32 B, 2 ns; each further one takes 2 ns more."""
    with_headers = machine(link__header_size="32 B", link__max_payload=packet)
    assert time_of(with_headers, [load(0)], scheme="pinned-host") == (1 + 300) * NS
    assert time_of(with_headers, [load((0, 15))], scheme="pinned-host") == (1 + 300 + (3 + headers - 1) * 2 + 3) * NS


def test_reads_serialize_at_the_link():
    """32 B in 40 ns. Both reads come in the first bucket, at 51 and 52; the second starts 40 ns after the
    bucket's start, which has passed, a third at 80, a fourth at 120."""
    slow = machine(link__bandwidth="0.8 GB/s")
    ends = [time_of(slow, [load(*range(n))], scheme="pinned-host") for n in (1, 2, 3, 4)]
    assert ends == [301 * NS, 302 * NS, (80 + 250) * NS, (120 + 250) * NS]


def test_headers_take_bandwidth():
    """As above, with as many bytes of headers."""
    slow = machine(link__bandwidth="0.8 GB/s", link__header_size="32 B", link__max_payload="32 B")
    ends = [time_of(slow, [load(*range(n))], scheme="pinned-host") for n in (1, 2, 3)]
    assert ends == [301 * NS, (80 + 250) * NS, (160 + 250) * NS]


def test_a_way_is_free_when_the_link_has_taken_its_line():
    """Two victims of 128 B, 160 ns each, both in the bucket of 351."""
    slow = machine(link__bandwidth="0.8 GB/s")
    fill_l2 = [store((entry, 15)) for entry in range(32)]
    bucket = 351 * NS // BUCKET * BUCKET
    late = {"critical_path_cycles": 301 - 32}
    assert time_of(slow, [*fill_l2, store(32, **late)], scheme="pinned-host") == (301 + 100 + 160) * NS
    assert time_of(slow, [*fill_l2, store(32, 33, **late)], scheme="pinned-host") == bucket + (320 + 50) * NS


@pytest.mark.parametrize("slots", [1, 2])
def test_a_full_write_back_buffer_holds_the_next_victim(slots):
    """As above: the first victim leaves its slot when the link has taken it, 160 ns after 351. The store waits for the
    slot of its last victim, not for the link."""
    slow = machine(link__bandwidth="0.8 GB/s", l2__writeback_buffer=slots)
    fill_l2 = [store((entry, 15)) for entry in range(32)]
    late = {"critical_path_cycles": 301 - 32}
    at_once, held = (store(*range(32, 32 + slots + more), **late) for more in (0, 1))
    assert time_of(slow, [*fill_l2, at_once], scheme="pinned-host") == (301 + slots - 1 + 100) * NS
    assert time_of(slow, [*fill_l2, held], scheme="pinned-host") == (351 + 160 + 50) * NS


def test_the_directions_are_independent():
    """Two write-backs take the one direction for 320 ns, out of a write-back buffer; the read after them, which
    replaces a clean line, has its own."""
    slow = machine(link__bandwidth="0.8 GB/s", l2__writeback_buffer=2)
    fill_l2 = [store((0, 15)), store((1, 15)), load(2, use_distance=0), *[store(entry) for entry in range(3, 32)]]
    evict = [store(32, 33, critical_path_cycles=300 - 32), load(34)]
    assert time_of(slow, [*fill_l2, *evict], scheme="pinned-host") == (302 + 300) * NS


def test_each_direction_has_its_bandwidth():
    """As in the test of writes, at 0.8 GB/s from the GPU and 16 GB/s to it; then the other way round."""
    fill_l2 = [store((entry, 15)) for entry in range(32)]
    victims = [*fill_l2, store(32, 33, critical_path_cycles=301 - 32)]
    taken_ps = 351 * NS // BUCKET * BUCKET + (320 + 50) * NS
    slow_write = machine(link__write_bandwidth="0.8 GB/s")
    assert time_of(slow_write, victims, scheme="pinned-host") == taken_ps
    assert time_of(slow_write, [load(0, 1, 2)], scheme="pinned-host") == time_of(
        M, [load(0, 1, 2)], scheme="pinned-host"
    )
    slow_read = machine(link__bandwidth="0.8 GB/s", link__write_bandwidth="16 GB/s")
    assert time_of(slow_read, victims, scheme="pinned-host") == time_of(M, victims, scheme="pinned-host")
    assert time_of(slow_read, [load(0, 1, 2)], scheme="pinned-host") == (80 + 250) * NS


def nvlink(**keys):
    """32 B are a packet of three flits of 16 B."""
    return machine(**{"link__protocol": "nvlink", "link__max_payload": "256 B"} | keys)


def test_nvlink_carries_a_flit_for_each_packet():
    """48 B in 60 ns: the reads' data pass at the bucket's start, then every 60 ns."""
    ends = [time_of(nvlink(link__bandwidth="0.8 GB/s"), [load(*range(n))], scheme="pinned-host") for n in (1, 2, 3)]
    assert ends == [301 * NS, (60 + 250) * NS, (120 + 250) * NS]


def test_nvlink_s_read_requests_take_the_other_direction():
    """16 B in 200 ns: each request has passed 200 ns after the last one, and its data come 197 ns later."""
    slow = nvlink(link__write_bandwidth="0.08 GB/s")
    ends = [time_of(slow, [load(*range(n))], scheme="pinned-host") for n in (1, 2, 3)]
    assert ends == [(passed + 197 + 50) * NS for passed in (51 + 200, 400, 600)]


def test_nvlink_s_acknowledgements_take_the_other_direction():
    """Two victims of 128 B have an acknowledgement of 16 B each, 200 ns to the GPU, before the data of a read.
    The other machine has the same headers, and nothing else."""
    fill_l2 = [store((0, 15)), store((1, 15)), load(2, use_distance=0), *[store(entry) for entry in range(3, 32)]]
    evict = [store(32, 33, critical_path_cycles=300 - 32), load(34)]
    slow = {"link__bandwidth": "0.08 GB/s", "link__write_bandwidth": "16 GB/s"}
    headers = machine(link__header_size="16 B", link__max_payload="256 B", **slow)
    without = time_of(headers, [*fill_l2, *evict], scheme="pinned-host")
    assert time_of(nvlink(**slow), [*fill_l2, *evict], scheme="pinned-host") == without + 2 * 200 * NS


@pytest.mark.parametrize("most", [128, 256])
def test_nvlink_s_one_way_copies_reach_what_is_measured(most):
    """Foley and Danskin, Hot Chips 28: 94 % at 256 B. NVIDIA/nccl-tests issue 149: SMs send up to 128 B."""
    machine_ = nvlink(link__max_payload=f"{most} B")
    ((_, requests, written, acknowledged),) = carried_bytes(
        engine_numbers(machine_, Fraction(1)), machine_.policies(), [1 << 20]
    )
    assert (1 << 20) / written == most / (most + 16)
    assert requests == acknowledged == (1 << 20) // most * 16
