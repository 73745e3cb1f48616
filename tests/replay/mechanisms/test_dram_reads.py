"""Reads of banked device memory (docs/explanation/replay-model.md, Device memory).

A load that issues at `i` is at its channel at i + 89; the end of its data is 89 before its arrival. A closed bank's
data begin tRCD + tCL = 20 after the request, end 2 later. There is one bank, whose rows hold 8 entries, or one bank
in each of four groups, in which neighbouring entries lie.
"""

import pytest

from tests.replay.mechanisms.hand import NS, load, machine, run, store, time_of

ONE_BANK = {"dram__model": "banked", "dram__banks": 1, "dram__bank_groups": 1, "dram__timing__tRAS": "20 ns"}
FOUR_BANKS = {**ONE_BANK, "dram__banks": 4, "dram__bank_groups": 4}


def one_bank(**timing):
    return machine(**{**ONE_BANK, **{f"dram__timing__{name}": f"{ns} ns" for name, ns in timing.items()}})


@pytest.mark.parametrize("rcd_ns", [10, 30])
def test_a_closed_bank_is_activated_first(rcd_ns):
    """The load-to-use latency contains the activation; an open row does without."""
    config = one_bank(tRCD=rcd_ns)
    assert time_of(config, [load(0)]) == (1 + 200) * NS
    assert time_of(config, [load(0), load((0, 2))]) == (201 + 200 - rcd_ns) * NS
    assert time_of(config, [load(0), load(7)]) == (201 + 200 - rcd_ns) * NS


@pytest.mark.parametrize("rp_ns", [10, 25])
def test_another_row_of_the_bank_is_precharged_first(rp_ns):
    assert time_of(one_bank(tRP=rp_ns), [load(0), load(8)]) == (201 + rp_ns + 200) * NS


@pytest.mark.parametrize(("ras_ns", "waits_ns"), [(199, 0), (200, 0), (201, 1), (400, 200)])
def test_a_row_stays_open_for_tras(ras_ns, waits_ns):
    """Activated at 90; the other row's request comes at 290."""
    assert time_of(one_bank(tRAS=ras_ns), [load(0), load(8)]) == (201 + waits_ns + 10 + 200) * NS


@pytest.mark.parametrize(("rtp_ns", "waits_ns"), [(190, 0), (191, 1), (300, 110)])
def test_a_precharge_comes_trtp_after_the_read(rtp_ns, waits_ns):
    """Read at 100; the other row's request comes at 290."""
    assert time_of(one_bank(tRTP=rtp_ns), [load(0), load(8)]) == (201 + waits_ns + 10 + 200) * NS


@pytest.mark.parametrize("ccd_ns", [2, 4, 10])
def test_columns_of_a_bank_follow_each_other_at_tccd_l(ccd_ns):
    """Sectors of one request, and two requests to a row, the second of which comes a cycle later."""
    config = one_bank(tCCD_L=ccd_ns)
    assert time_of(config, [load((0, 3))]) == (201 + ccd_ns + 1) * NS
    assert time_of(config, [load(0, 1)]) == (201 + ccd_ns) * NS


def test_bursts_of_other_banks_follow_each_other_on_the_bus():
    """Requests at 90 and 91, data from 110 and 111: the bus is free again at 112."""
    config = machine(**FOUR_BANKS, dram__timing__tRRD_S="1 ns", dram__timing__tFAW="4 ns")
    assert time_of(config, [load(0)]) == 201 * NS
    assert time_of(config, [load(0, 1)]) == (201 + 2) * NS


REFRESH = {"dram__timing__tREFI": "1 us", "dram__timing__tRFC": "200 ns"}


def test_a_refresh_takes_the_bus():
    """From 1000 to 1200. A load that issues at 890 has its data at 999, one that issues at 891 would at 1000."""
    config = machine(**ONE_BANK, **REFRESH)
    assert time_of(config, [load(0, critical_path_cycles=890)]) == (890 + 200) * NS
    assert time_of(config, [load(0, critical_path_cycles=891)]) == (1202 + 89) * NS
    assert time_of(one_bank(), [load(0, critical_path_cycles=891)]) == (891 + 200) * NS


def test_a_refresh_closes_rows():
    """A row opened at 90 is closed at 1000 and can be opened from 1200 on."""
    config = machine(**ONE_BANK, **REFRESH)
    first = load(0, use_distance=0)
    assert time_of(config, [first, load((0, 2), critical_path_cycles=700)]) == (701 + 190) * NS
    assert time_of(config, [first, load((0, 2), critical_path_cycles=1400)]) == (1401 + 200) * NS
    assert time_of(config, [first, load((0, 2), critical_path_cycles=1010)]) == (1222 + 89) * NS


def test_a_request_merges_into_a_row_scheduled_to_close_later():
    """Row 0 is open. Rows 1 and 2 are requested at 390 and 391: opened at 400 and 430. A request for row 1 at 392 reads
    behind the first one, which has the bus until 422, before row 2 is opened.
    """
    ops = [load(0, use_distance=0), load(8, 16, critical_path_cycles=300, use_distance=0), load(9), store(1)]
    assert time_of(one_bank(), ops) == (424 + 89 + 100) * NS


def test_a_merged_request_waits_until_the_row_is_open():
    """Rows 0, 1 and 0 of a closed bank, requested at 90, 91 and 92: row 0 is open at 100, its data follow."""
    ops = [load(0, use_distance=0), load(8, use_distance=0), load((0, 2), use_distance=0)]
    only = [load(0, use_distance=0), load(8, use_distance=0)]
    config = one_bank(tRAS=100)
    count = run(config, ops)
    assert count["load_ps"] - run(config, only)["load_ps"] == (114 + 89 - 3) * NS


@pytest.mark.parametrize(("chain_ns", "open_ns"), [(1010, 1200), (1110, 1200), (1111, 1200), (1112, 1201)])
def test_a_closed_bank_is_not_activated_during_a_refresh(chain_ns, open_ns):
    """Nor where the bus alone limits activations, so that they have no reservation table."""
    config = machine(**ONE_BANK, **REFRESH, dram__timing__tRRD_S="1 ns", dram__timing__tFAW="4 ns")
    assert time_of(config, [load(0, critical_path_cycles=chain_ns)]) == (open_ns + 22 + 89) * NS


@pytest.mark.parametrize(("entry", "begins_ns"), [(0, 1000), (1, 250), (3, 750)])
def test_single_banks_refresh_one_after_the_other(entry, begins_ns):
    """Bank n of four at n x 250 and every 1000 from there on, for 200; whoever comes before that is served."""
    single = {"dram__refresh": "single_bank", "dram__timing__tRFCSB": "200 ns"}
    config = machine(**FOUR_BANKS, **REFRESH, **single)
    at = begins_ns - 89  # issued then, it is at the channel when its bank's refresh begins
    assert time_of(config, [load(entry, critical_path_cycles=at - 1)]) == (at - 1 + 200) * NS
    assert time_of(config, [load(entry, critical_path_cycles=at)]) == (begins_ns + 200 + 22 + 89) * NS
    other = (entry + 2) % 4
    assert time_of(config, [load(other, critical_path_cycles=at)]) == (at + 200) * NS


@pytest.mark.parametrize(("entry", "begins_ns"), [(0, 1000), (1, 250), (3, 750)])
def test_pseudo_channels_refresh_one_after_the_other(entry, begins_ns):
    """Pseudo-channel n of four at n x 250 and every 1000 from there on: for 200, its bus is taken."""
    four = {**ONE_BANK, **REFRESH, "dram__channels": 2, "dram__pseudo_channels": 2, "dram__refresh": "staggered"}
    config = machine(**four)
    at = begins_ns - 109  # issued then, its data would be on the bus when its pseudo-channel's refresh begins
    assert time_of(config, [load(entry, critical_path_cycles=at - 1)]) == (at - 1 + 200) * NS
    assert time_of(config, [load(entry, critical_path_cycles=at)]) == (begins_ns + 202 + 89) * NS
    other = (entry + 2) % 4
    assert time_of(config, [load(other, critical_path_cycles=at)]) == (at + 200) * NS
    later = begins_ns + 210 - 89  # a row that was open before the refresh
    assert time_of(config, [load(entry), load((entry, 2), critical_path_cycles=later - 200)]) == (later + 200) * NS
