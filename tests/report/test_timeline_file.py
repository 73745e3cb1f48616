"""Timelines as files: the trace agrees with the simulation; figures are complete."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.report import timeline_figure
from buddysim.report.timeline_file import check_timeline, write_timeline
from buddysim.training.driver import simulate_outcome, simulate_plan
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.outcome import IterationOutcome
from buddysim.training.recorded_step.from_config import network_from_config
from buddysim.training.schemes import vdnn
from tests.training.doubles import MS, Cost, chain, machine
from tests.training.iteration import general_scheme
from tests.training.sharding.test_fully_sharded import CONFIG


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


#: What Perfetto requires of each kind of event (Trace Event Format, "Metadata", "Complete", "Counter", "Instant").
_REQUIRED = {
    "M": {"name": str, "pid": int, "args": dict},
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": float, "dur": float, "args": dict},
    "C": {"name": str, "pid": int, "ts": float, "args": dict},
    "i": {"name": str, "pid": int, "tid": int, "ts": float, "s": str, "args": dict},
}


def test_collectives_and_copies_are_streams_with_names(tmp_path: Path):
    """A sharded step: gathers and reductions by block, and every event as the format asks."""
    network = network_from_config(CONFIG, sequence=8, recipe="fp32", fsdp=2)
    out = simulate_outcome(network, 2, "h100-sxm", "offload-activations", optimizer="adamw")
    write_timeline(tmp_path / "t.json", {"sharded": out})
    document = json.loads((tmp_path / "t.json").read_text())
    events = document["traceEvents"]
    assert set(document) == {"traceEvents", "displayTimeUnit"}
    for event in events:
        for key, kind in _REQUIRED[event["ph"]].items():
            assert isinstance(event[key], (int, float) if kind is float else kind)
        assert event.get("dur", 0) >= 0
    threads = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
    assert list(threads) == ["compute", "offload", "prefetch", "gather", "reduce", "stalls"]
    names = {
        stream: [event["name"] for event in events if event["ph"] == "X" and event["tid"] == threads[stream]]
        for stream in threads
    }
    gathered = [name for name in names["gather"] if name.startswith("all_gather of")]
    blocks = [f"all_gather of model.layers.{number}" for number in (0, 1, 1, 0)]
    assert gathered == ["all_gather of the model", *blocks]
    reduced = [name for name in names["reduce"] if name.startswith("reduce_scatter")]
    assert reduced == [f"reduce_scatter of {where}" for where in ("model.layers.1", "model.layers.0", "the model")]
    assert names["offload"]
    assert all(name.startswith("offload of model") for name in names["offload"])
    assert all(name.startswith("prefetch of ") for name in names["prefetch"])


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_figures_are_the_same_bytes_each_time(tmp_path: Path, outcome: IterationOutcome, suffix: str, magic: bytes):
    for name in ("a", "b"):
        write_timeline(tmp_path / f"{name}.{suffix}", {"vdnn-all-p": outcome})
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
