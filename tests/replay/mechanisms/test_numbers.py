"""What a machine's figures become (docs/explanation/replay-model.md, Time): latencies rounded once, costs and bursts
up."""

from fractions import Fraction

import pytest

from buddysim.machine import Machine
from buddysim.replay.parameters import engine_numbers
from tests.replay.bare import all_numbers

P100 = Machine.load("p100-nvlink2")

#: By hand: 1.3 GHz, 875 MHz, 32 B at 41.6, 83.2 and 14 GB/s, costs in 1/1024 ps
BY_HAND = {
    "cycle_ps": 769,  # 769.23
    "pipeline_ps": 3077,  # 3076.92
    "issue_interval_ps": 769,
    "barrier_ps": 769,
    "barrier_arrival_interval_ps": 0,
    "icache_miss_ps": 0,
    "icache_prefetch_lines": 0,
    "assumed_instruction_ps": 4615,  # 4615.38
    "l1_hit_ps": 63077,  # 63076.92
    "l1_line_ps": 769,
    "l1_queue_ps": 32 * 769,
    "request_ps": 90_000,  # half of 180 ns
    "reply_ps": 90_000,
    "sector_ps": 770,  # 769.23, up
    "request_cost": 787_693,  # 787,692.31, up
    "reply_cost": 787_693,
    "slice_cost": 393_847,  # 393,846.15, up
    "compressor_ps": 12_571,  # 12,571.43
    "compressor_cost": 1143 * 1024,  # of 1142.86
    "dram_burst_ps": 2286,  # 2285.71, up
    "dram_before_ps": (280_000 - 180_000 - 14_000 - 14_000 - 2286) // 2,
    "dram_after_ps": 34_857,
    "link_load_ps": 430_000 - 180_000,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_numbers_of_the_paper_s_machine(name):
    assert all_numbers(P100)[name] == BY_HAND[name]


def test_an_odd_picosecond_belongs_to_the_reply():
    numbers = engine_numbers(P100.with_overrides({"l2.load_to_use": "100.001 ns"}), Fraction(1))
    assert (numbers["request_ps"], numbers["reply_ps"]) == (50_000, 50_001)


@pytest.mark.parametrize(
    ("slices", "channels", "expected"), [(32, 32, (1, 2)), (64, 32, (2, 2)), (16, 32, (1, 4)), (8, 32, (1, 8))]
)
def test_pseudo_channels_of_a_slice(slices, channels, expected):
    numbers = engine_numbers(P100.with_overrides({"l2.slices": slices, "dram.channels": channels}), Fraction(1))
    assert (numbers["slices_per_channel"], numbers["pseudo_per_slice"]) == expected
