"""Writes to banked device memory, and activations (docs/explanation/replay-model.md, Device memory).

Lines of device memory and of host memory, which does not touch the channel, fill the L2; a store evicts entry 0, the
oldest. What leaves a slice at `t` is at its channel at t + 39, and what ends there at `u` is at the SM at u + 89.
tRCD, tRP and tCL are 10 ns, tCWL 5, a burst 2.
"""

import pytest

from tests.replay.mechanisms.hand import NS, load, machine, store, time_of

WRITES = {
    "dram__model": "banked",
    "dram__banks": 1,
    "dram__bank_groups": 1,
    "dram__write_high_watermark": 2,
    "dram__write_low_watermark": 1,
    "dram__timing__tRAS": "20 ns",
    "dram__timing__tCWL": "5 ns",
    "dram__timing__tRTW": "7 ns",  # read data, and then at once write data
    "dram__timing__tWR": "4 ns",
    "dram__timing__tWTR": "8 ns",
}
REGIONS = [(0, 64, 0, 4), (64, 128, 2, 4)]


def channel(watermarks=None, **timing):
    return machine(
        **{**WRITES, **(watermarks or {}), **{f"dram__timing__{name}": f"{ns} ns" for name, ns in timing.items()}}
    )


def end_ns(config, *then, dirty=1):
    """When the last of some loads is back: operations at their slice at (ns, op), after lines that fill the L2."""
    ops = [store((0, dirty)), store(1), store(8), load(*range(64, 93), use_distance=0)]
    at_ns = len(ops)
    for slice_ns, op in then:
        op[0].update(critical_path_cycles=slice_ns - 50 - at_ns, use_distance=0)
        ops.append(op)
        at_ns = slice_ns - 50
    return time_of(config, ops, regions=REGIONS) / NS


def evict(slice_ns=351):
    return slice_ns, store(95)


# Evicted at 351, the write is at the channel at 390, which is idle. The row is open at 400, the burst written from 404
# to 406.
WRITTEN = 406


@pytest.mark.parametrize("wtr_ns", [8, 18])
def test_a_read_comes_twtr_after_the_write(wtr_ns):
    assert end_ns(channel(tWTR=wtr_ns), evict(), (352, load((1, 2)))) == WRITTEN + wtr_ns + 10 + 2 + 89


def test_before_a_write_the_bus_is_free_for_reads():
    """The row is open at 401 for a read that comes behind the write, and its data would be from 411 on, during the
    bus turnaround."""
    assert end_ns(channel(), (350, load((1, 2))), evict(400)) == 350 + 39 + 20 + 2 + 89


@pytest.mark.parametrize(("cwl_ns", "read_ns"), [(5, 424), (23, 442), (24, 444)])
def test_write_data_come_tcwl_after_their_command(cwl_ns, read_ns):
    """From 400 + tCWL on. The data of a read that comes at 414 could be read from 424 on."""
    assert end_ns(channel(tCWL=cwl_ns), evict(), (375, load((1, 2)))) == read_ns + 2 + 89


@pytest.mark.parametrize(("rtw_ns", "idle_ns"), [(7, 0), (12, 6), (27, 20)])
def test_a_write_comes_trtw_after_the_read(rtw_ns, idle_ns):
    """A read at 340, whose data end at 401 in the slot before 400; then, both in an open row, two bursts of writes, 8
    ns, 10 ns, and another read."""
    ops = (340, load((1, 2))), evict(), (352, load((1, 4)))
    assert end_ns(channel(tRTW=rtw_ns), *ops, dirty=3) == 400 + idle_ns + 4 + 8 + 10 + 2 + 89


@pytest.mark.parametrize("rtw_ns", [7, 27])
def test_a_bus_that_has_been_idle_is_ready_for_writes(rtw_ns):
    """The write comes at 480, 79 ns after the read's data, and is written from 484 on."""
    ops = (340, load((1, 2))), evict(441), (442, load((1, 4)))
    assert end_ns(channel(tRTW=rtw_ns), *ops) == 486 + 8 + 10 + 2 + 89


@pytest.mark.parametrize("wr_ns", [4, 100])
def test_a_row_is_closed_twr_after_the_write(wr_ns):
    """The read of another row: precharge, activation, then its data."""
    assert end_ns(channel(tWR=wr_ns), evict(), (352, load((8, 2)))) == WRITTEN + wr_ns + 10 + 20 + 2 + 89


def test_writes_below_the_low_watermark_wait():
    few = channel({"dram__write_high_watermark": 8, "dram__write_low_watermark": 2})
    alone = 352 + 39 + 20 + 2 + 89
    assert end_ns(few, evict(), (352, load((1, 2)))) == alone
    assert end_ns(few, evict(), (352, load((1, 2))), dirty=3) > alone


def test_writes_after_reads_wait_for_the_high_watermark():
    """The read's data end at 401: a write that comes at 390 waits, one at 410 finds the bus idle."""
    few = channel({"dram__write_high_watermark": 8, "dram__write_low_watermark": 1})
    first = 340, load((1, 2))
    assert end_ns(few, first, evict(), (352, load((1, 4)))) == 401 + 2 + 89
    assert end_ns(few, first, evict(371), (372, load((1, 4)))) > 372 + 39 + 10 + 2 + 89


ALONE = {"dram__write_drain": "exclusive"}


@pytest.mark.parametrize(("drains", "end"), [("interleaved", 401 + 2), ("exclusive", 408 + 18 + 2)])
def test_reads_wait_until_a_drain_is_over(drains, end):
    """The data of a read of another bank, booked before the drain, end at 401. The drain has the bus from 400 on: two
    bursts from 404 to 408, then tWTR and tCL. The next read of the first one's row could have its data from 401 on."""
    banks = {"dram__banks": 2, "dram__bank_groups": 2, "dram__write_drain": drains}
    ops = (340, load((1, 2))), evict(), (352, load((1, 4)))
    assert end_ns(channel(banks), *ops, dirty=3) == end + 89


def test_exclusive_drains_wait_for_the_high_watermark():
    """Where a read was booked behind the last drain, an idle bus doesn't start one."""
    few = {"dram__write_high_watermark": 8, "dram__write_low_watermark": 1}
    ops = (340, load((1, 2))), evict(371), (372, load((1, 4)))
    waited = 372 + 39 + 10 + 2 + 89
    assert end_ns(channel(few), *ops) > waited
    assert end_ns(channel(few | ALONE), *ops) == waited


@pytest.mark.parametrize(("timing", "apart_ns"), [({"tRRD_S": 40, "tFAW": 16}, 40), ({"tRRD_S": 4, "tFAW": 160}, 40)])
def test_rows_are_activated_at_a_rate(timing, apart_ns):
    """Rows of two banks, requested at 90 and 91."""
    four = {"dram__banks": 4, "dram__bank_groups": 4}
    assert time_of(channel(four, **timing), [load(0, 1)]) == (90 + apart_ns + 20 + 2 + 89) * NS
