"""The timeline of a replay: each kernel once, and the bytes of all of them under the counters."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from buddysim.cli import main
from buddysim.report.replay_timeline import COUNTERS, trace_events
from buddysim.synthetic import make_trace

TRACE = str(Path(__file__).parents[2] / "traces" / "lud256.bin")


def kernel(index: int, launch_ps: int, time_ps: int, sectors: int = 0, link: int = 0) -> dict[str, Any]:
    columns = {
        "device_read_sectors": sectors,
        "device_write_sectors": 0,
        "link_read_bytes": link,
        "link_write_bytes": 0,
    }
    return {"index": index, "name": f"k{index}", "launch_ps": launch_ps, "time_ps": time_ps, **columns}


def events_of(*kernels: dict[str, Any]) -> list[dict[str, Any]]:
    result = {"provenance": {"trace": "t", "machine": "m"}, "per_kernel": list(kernels)}
    events: list[dict[str, Any]] = trace_events({"buddy": result})["traceEvents"]
    return events


def bytes_under(events: list[dict[str, Any]], name: str, direction: str) -> float:
    points = [(event["ts"], event["args"][direction]) for event in events if event["name"] == name]
    assert points[-1][1] == 0
    return sum(rate * 1000 * (after - at) for (at, rate), (after, _) in pairwise(points))


def test_the_area_under_the_counters_is_the_traffic(tmp_path: Path) -> None:
    saved, timeline = tmp_path / "r.json", tmp_path / "t.json"
    assert main(["run", TRACE, "--no-sensitivity", "--json", str(saved), "--timeline", str(timeline)]) == 0
    results = json.loads(saved.read_text())
    events = json.loads(timeline.read_text())["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names == ["buddy: lud256.bin on p100-nvlink2", "ideal: lud256.bin on p100-nvlink2"]
    for pid, result in enumerate(results.values()):
        own = [event for event in events if event["pid"] == pid]
        slices = [event for event in own if event["ph"] == "X"]
        assert [event["args"]["launch_index"] for event in slices] == [k["launch_index"] for k in result["per_kernel"]]
        assert max(event["ts"] + event["dur"] for event in slices) == pytest.approx(result["time_ps"] / 1e6)
        for name, (columns, unit_bytes) in COUNTERS.items():
            for direction, column in columns.items():
                expected = unit_bytes * sum(one[column] for one in result["per_kernel"])
                assert bytes_under(own, name, direction) == pytest.approx(expected)


def test_kernels_at_once_are_on_two_threads_and_add_up() -> None:
    events = events_of(kernel(0, 0, 100, 100), kernel(1, 50, 100, 50), kernel(2, 150, 10), kernel(3, 160, 0))
    assert [(event["name"], event["tid"]) for event in events if event["ph"] == "X"] == [
        ("k0", 0), ("k1", 1), ("k2", 0), ("k3", 0),
    ]  # fmt: skip
    rates = [event["args"]["read"] for event in events if event["name"] == "DRAM, GB/s"]
    assert rates == [32_000, 48_000, 16_000, 0, 0]


def test_another_ending_is_refused_before_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_trace("chase", tmp_path / "t.bin", {"footprint": "64 KiB"})
    assert main(["run", str(tmp_path / "t.bin"), "--timeline", str(tmp_path / "x.svg")]) == 2
    assert "expected a name that ends in .json" in capsys.readouterr().err
    assert not (tmp_path / "x.svg").exists()
