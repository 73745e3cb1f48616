"""Bytes of speculative fetches and cancelled bytes add up; nothing is counted twice."""

from __future__ import annotations

import pytest

import buddysim
from buddysim.buddy import Targets
from buddysim.machine import Machine
from buddysim.trace import open_trace
from tests.replay.programs import random_program

SMALL = {"l1.size": "6 KiB", "l2.size": "256 KiB", "sm.count": 8, "metadata_cache.size": "4 KiB"}
KINDS = ("demand", "overfetch", "read_modify_write", "writeback", "metadata_read", "metadata_write")


@pytest.mark.parametrize("model", ["simple", "banked"])
@pytest.mark.parametrize("seed", range(2))
def test_bytes_add_up_where_speculative_fetches_are_cancelled(tmp_path, seed, model):
    path = random_program(seed, entries=4096, blocks=96).write(tmp_path / "t.bin")
    results = {}
    for cancel in (False, True):
        # A slow channel: a speculative fetch waits until the metadata have arrived.
        settings = {**SMALL, "dram.model": model, "dram.channels": 1, "metadata_cache.cancel_misspeculated": cancel}
        machine = Machine.load("p100-nvlink2").with_overrides({**settings, "l2.slices": 4})
        with open_trace(path) as trace:
            count = results[cancel] = buddysim.simulate(trace, machine, "buddy", Targets.uniform(trace, "2x")).counters
        by_channel = {kind: count[f"device.channel_{kind}_bytes"] for kind in KINDS}
        assert count["device.read_bytes"] == sum(sum(by_channel[kind]) for kind in KINDS[:3])
        assert count["device.metadata_bytes"] == sum(sum(by_channel[kind]) for kind in KINDS[4:])
        moved = count["device.read_bytes"] + count["device.write_bytes"] + count["device.metadata_bytes"]
        assert (
            count["device.bus_bytes"]
            == moved - count["device.queued_write_bytes"]
            == sum(count["device.channel_bytes"])
        )
        assert count["metadata.misspeculated_bytes"] <= count["device.overfetch_bytes"]
        assert count["metadata.cancelled_bytes"] % 32 == 0
        # A speculative fetch is of at most two sectors, and one is wrong by at least one.
        wrong = count["metadata.misspeculated_bytes"] + count["metadata.cancelled_bytes"]
        assert 32 * count["metadata.misspeculated_fills"] <= wrong <= 64 * count["metadata.misspeculated_fills"]
    assert results[False]["metadata.cancelled_bytes"] == 0
    assert results[True]["metadata.cancelled_bytes"] > 0
    assert results[True]["metadata.misspeculated_bytes"] < results[False]["metadata.misspeculated_bytes"]
