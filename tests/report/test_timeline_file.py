"""Timelines as files: the trace agrees with the simulation; figures are complete."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.report import timeline_figure
from buddysim.report.timeline_file import check_timeline, write_timeline
from buddysim.training.driver import simulate_plan
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.outcome import IterationOutcome
from buddysim.training.schemes import vdnn
from tests.training.doubles import MS, Cost, chain, machine
from tests.training.iteration import general_scheme


@pytest.fixture
def outcome() -> IterationOutcome:
    network, cost = chain("crcpcf"), Cost(default_ps=MS // 2)
    plan = vdnn.plan(network, 1, machine(), cost, "vdnn-all-p", TrainingOptions())
    return simulate_plan(network, 1, machine(), cost, plan, TrainingOptions())


def test_the_trace_holds_every_operation_stall_and_step(tmp_path: Path, outcome: IterationOutcome):
    write_timeline(tmp_path / "t.json", {"one": outcome, "two": outcome})
    document = json.loads((tmp_path / "t.json").read_text())
    events = [event for event in document["traceEvents"] if event["pid"] == 1]
    threads = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
    assert threads == {"compute": 0, "offload": 1, "prefetch": 2, "stalls": 3}
    shown = [(e["args"]["start_ps"], e["args"]["end_ps"], e["tid"]) for e in events if e["ph"] == "X" and e["tid"] < 3]
    assert shown == [(r.start_ps, r.end_ps, threads[r.stream]) for r in outcome.schedule.records]
    stalled = [event["args"]["ps"] for event in events if event["ph"] == "X" and event["tid"] == 3]
    assert sum(stalled) == outcome.all_layers.stall_ps > 0
    held = [sum(event["args"].values()) for event in events if event["ph"] == "C"]
    assert max(held) == outcome.all_layers.usage.peak_bytes
    assert len(held) == len(outcome.program.steps)
    assert all(event["ts"] * 10**6 == event["args"]["start_ps"] for event in events if event["ph"] == "X")


def test_the_hosts_work_has_a_row_where_there_is_any(tmp_path: Path):
    network, cost = chain("ccc"), Cost(default_ps=MS)
    plan = general_scheme.plan(network, 1, machine(), cost, "test-host", TrainingOptions())
    out = simulate_plan(network, 1, machine(), cost, plan, TrainingOptions())
    write_timeline(tmp_path / "t.json", {"test-host": out})
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    threads = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
    assert threads == {"compute": 0, "offload": 1, "prefetch": 2, "host": 3, "stalls": 4}
    shown = [
        event["args"]["end_ps"] - event["args"]["start_ps"]
        for event in events
        if event.get("tid") == 3 and event["ph"] == "X"
    ]
    assert shown == [3 * MS, 3 * MS // 2]
    streams = timeline_figure.draw({"test-host": out}).axes[0]
    assert [label.get_text() for label in streams.get_yticklabels()] == ["compute", "offload", "prefetch", "host"]


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_figures_are_the_same_bytes_each_time(tmp_path: Path, outcome: IterationOutcome, suffix: str, magic: bytes):
    for name in ("a", "b"):
        write_timeline(tmp_path / f"{name}.{suffix}", {"vdnn-all-p": outcome, "again": outcome})
    first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("a", "b"))
    assert first.startswith(magic)
    assert first == second


@pytest.mark.parametrize("name", ["t.txt", "t", "nowhere/t.json"])
def test_other_names_are_refused_before_anything_runs(tmp_path: Path, name: str):
    with pytest.raises(BuddysimError, match=r"expected a name that ends in|no folder"):
        check_timeline(tmp_path / name)


def test_stalls_have_their_layers_names_and_memory_one_scale(outcome: IterationOutcome) -> None:
    """The longest stalls first; no name lies over another."""
    small = simulate_plan(
        chain("crc"), 1, machine(), Cost(default_ps=MS), vdnn.plan(chain("crc"), 1, machine(), Cost(default_ps=MS),
        "vdnn-none-p", TrainingOptions()), TrainingOptions(),
    )  # fmt: skip
    figure = timeline_figure.draw({"vdnn-all-p": outcome, "small": small})
    streams, memory, no_stalls, little = figure.axes
    assert outcome.all_layers.stall_ps > 0 == small.all_layers.stall_ps
    longest = max(outcome.schedule.stalls, key=lambda stall: stall.ps)
    layers = {outcome.network.layers[stall.layer].name for stall in outcome.schedule.stalls}
    named = {text.get_text(): text for text in streams.texts}
    assert outcome.network.layers[longest.layer].name in named
    assert set(named) <= layers
    assert not no_stalls.texts
    figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in streams.texts), key=lambda box: box.x0)
    assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(boxes))
    assert memory.get_ylim() == little.get_ylim()
