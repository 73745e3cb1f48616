"""Assumed values of a machine, and the values to compare them with."""

from __future__ import annotations

from buddysim.machine import Machine
from buddysim.machine.assumptions import assumptions

P100 = Machine.load("p100-nvlink2")
BUDDY = ("metadata_cache", "buddy")


def test_alternatives_are_declared_ends_or_half_and_double_or_other_choices() -> None:
    by_key = {one.key: one for one in assumptions(P100, BUDDY)}
    assert by_key["link.header_size"].alternatives == ()  # nvlink has its own
    assert by_key["l2.writeback_buffer"].alternatives == ("1", "0")
    assert by_key["link.protocol"].alternatives == ("packets",)
    assert by_key["l1.mshrs"].alternatives == ("128", "512")
    assert by_key["crossbar.reply_bandwidth"].alternatives == ("16 B/core_cycle", "64 B/core_cycle")
    assert by_key["compression.latency"].alternatives == ("5.5 dram_cycles", "22 dram_cycles")
    assert by_key["buddy.bypass_1x"].alternatives == ("false",)
    assert by_key["metadata_cache.interleaving"].alternatives == ("own_slice",)
    assert by_key["dram.write_drain"].alternatives == ("exclusive",)
    assert by_key["l1.lines_per_cycle"].alternatives == ("2",)  # half a line is none
    assert by_key["l1.line"].alternatives == ()  # the only size that is modelled
    assert by_key["l1.mshrs"].value == "256"
    assert by_key["l1.mshrs"].source == P100.source("l1.mshrs")


def test_a_number_of_zero_has_the_largest_of_the_presets() -> None:
    by_key = {one.key: one for one in assumptions(P100, BUDDY)}
    assert by_key["l1.max_mshr_merges"].alternatives == ("7",)
    assert by_key["kernel.launch_latency"].alternatives == ("5000 core_cycles",)


def test_a_zero_that_stands_for_another_key_has_half_and_double_of_it() -> None:
    """The link from the GPU is as fast as to it."""
    by_key = {one.key: one for one in assumptions(P100.with_overrides({"link.bandwidth": "100 GB/s"}), BUDDY)}
    assert by_key["link.write_bandwidth"].alternatives == ("50 GB/s", "200 GB/s")


def test_what_a_run_does_not_read_is_left_out() -> None:
    keys = {one.key for one in assumptions(P100, BUDDY)}
    assert not any(key.startswith("um.") for key in keys)
    assert any(one.key.startswith("um.") for one in assumptions(P100, ("um",)))
    assert "dram.channels" not in keys  # its source is the paper


def test_a_value_of_a_known_source_is_not_assumed() -> None:
    measured = P100.with_overrides({"l1.mshrs": "128"}, source="measured: a test")
    assert "l1.mshrs" not in {one.key for one in assumptions(measured, BUDDY)}


def test_every_declared_end_is_a_value_that_the_machine_can_have() -> None:
    for one in assumptions(P100, BUDDY):
        assert one.value not in one.alternatives
        for text in one.alternatives:
            assert P100.with_overrides({one.key: text}).checksum != P100.checksum
