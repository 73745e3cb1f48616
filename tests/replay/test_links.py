"""Links of Fig. 11, from the slowest to an unlimited one: no resource exceeds its bandwidth; a faster link isn't
slower.

An earlier reply changes the order of later requests: hits, open rows, and the SM of the last thread blocks. A run may
therefore take a little longer with a faster link. The sensitivity range of `run` shows the
size of such changes.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from buddysim.machine import Machine
from buddysim.replay.result import ReplayResult
from buddysim.replay.scheme_results import simulate_schemes
from buddysim.synthetic import make_trace

LINKS = {"50 GB/s": 50e9, "100 GB/s": 100e9, "150 GB/s": 150e9, "200 GB/s": 200e9, "1000000 GB/s": 1e15}
MACHINE = Machine.load("p100-nvlink2").with_overrides({"l2.size": "512 KiB"})
JACOBI = Path(__file__).parents[2] / "traces" / "jacobi2d.bin"
BOUND = {"copied": {"op": "copy", "footprint": "1 MiB"}, "written": {"op": "write", "footprint": "4 MiB"}}

Results = dict[str, ReplayResult]


#: A quick one with the slowest, the usual and the unlimited link; slow ones with those between, too.
QUICK = ("copied", list(LINKS)[::2])
OF_ALL_LINKS = [pytest.param((trace, list(LINKS)), marks=pytest.mark.slow) for trace in (*BOUND, "jacobi2d")]


@pytest.fixture(scope="module", params=[QUICK, *OF_ALL_LINKS], ids=lambda param: f"{param[0]}-{len(param[1])}")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Return results of `buddy` with several links, relative to unlimited memory with the link of 150 GB/s."""
    trace, options = JACOBI, dict[str, Any](kernels=slice(0, 1))
    name, links = request.param
    if name in BOUND:
        trace, options = tmp_path_factory.mktemp("links") / "t.bin", {"threshold": 1.0}
        make_trace("stream", trace, {"sizes": "32 B:1, 128 B:1", **BOUND[name]})
    results = {}
    for link in links:
        machine, baseline = MACHINE.with_overrides({"link.bandwidth": link}), {"link.bandwidth": "150 GB/s"}
        both = simulate_schemes(trace, machine, ("buddy", "ideal"), baseline_set=baseline, sensitivity="all", **options)
        results[link] = both["buddy"]
    return results


def test_no_resource_beats_its_bandwidth(results: Results) -> None:
    dram = MACHINE.dram
    channels, channel_bytes_per_s = dram.channels * dram.pseudo_channels, 14e9
    assert str(dram.pseudo_channel_bandwidth) == "14 GB/s"
    for link, result in results.items():
        count, seconds = result.counters, result.counters["time_ps"] * 1e-12
        assert count["link.read_bytes"] <= LINKS[link] * seconds, link
        buffered = MACHINE.l2.slices * MACHINE.l2.writeback_buffer * (128 + 16)  # passes after the end of the kernel
        assert count["link.write_bytes"] - buffered <= LINKS[link] * seconds, link
        carried = count["device.bus_bytes"] - count["device.queued_write_bytes"]
        assert 0 < carried <= channels * channel_bytes_per_s * seconds, link


def test_a_faster_link_is_not_slower_beyond_the_sensitivity_range(results: Results) -> None:
    for (slow, ones), (fast, others) in combinations(results.items(), 2):
        assert others.slowdown["min"] <= ones.slowdown["max"], (slow, fast)


def test_the_slowest_link_binds_where_much_overflows(results: Results) -> None:
    """Half of the entries overflow, so that the laws above are tested with a busy link."""
    slowest, *_, fastest = results.values()
    if max(slowest.utilization["link_read"], slowest.utilization["link_write"]) > 0.9:
        assert slowest.slowdown["min"] > fastest.slowdown["max"]
    else:
        assert slowest.provenance["trace"] == JACOBI.name
