"""Buddy Compression in training: more room, longer computations, from a replay's result; alone and beneath vDNN."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.training import simulate
from buddysim.training.schemes.buddy_scaled import SUMMARY


def saved(folder: Path, ratio: float, buddy_ps: int, ideal_ps: int) -> str:
    path = folder / "r.json"
    results = {"buddy": {"compression.ratio": ratio, "time_ps": buddy_ps}, "ideal": {"time_ps": ideal_ps}}
    path.write_text(json.dumps(results))
    return str(path)


def test_room_and_slowdown_are_those_of_the_replay(tmp_path: Path) -> None:
    base = simulate("vgg16", 96, "titan-xp", "baseline-p").counters
    buddy = simulate("vgg16", 96, "titan-xp", "buddy-scaled", buddy_result=saved(tmp_path, 1.5, 110, 100))
    assert buddy.counters["memory.capacity_bytes"] == int(base["memory.capacity_bytes"] * 1.5)
    assert buddy.counters["memory.peak_bytes"] == base["memory.peak_bytes"]
    assert buddy.counters["time_ms"] == pytest.approx(1.1 * base["time_ms"], rel=1e-6)
    assert "device memory holds 1.5x" in buddy.assumptions["buddy"]


def test_what_did_not_fit_fits() -> None:
    assert not simulate("vgg16", 128, "titan-xp", "baseline-p").counters["fits"]
    assert not simulate("vgg16", 128, "titan-xp", "buddy-scaled").counters["fits"]  # nothing is known: no room is made
    assert simulate("vgg16", 128, "titan-xp", "buddy-scaled", buddy_ratio=2.0).counters["fits"]


def test_beneath_vdnn_less_is_offloaded() -> None:
    alone = simulate("vgg16", 192, "titan-xp", "vdnn-dyn").counters
    both = simulate("vgg16", 192, "titan-xp", "buddy-scaled-vdnn-dyn", buddy_ratio=2.0, buddy_slowdown=0.0).counters
    assert alone["offload.bytes"] > both["offload.bytes"]
    assert both["fits"]
    assert both["time_ms"] < alone["time_ms"]


def test_without_room_or_slowdown_each_is_what_lies_beneath() -> None:
    for name in SUMMARY:
        beneath = name.removeprefix("buddy-scaled-") if name != "buddy-scaled" else "baseline-p"
        ours, theirs = (simulate("alexnet", 64, "titan-xp", each).counters for each in (name, beneath))
        assert ours["time_ms"] == theirs["time_ms"], name
        assert ours["memory.peak_bytes"] == theirs["memory.peak_bytes"], name


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"buddy_ratio": 5.0}, "expected 1 to 4"),
        ({"buddy_ratio": 0.5}, "expected 1 to 4"),
        ({"buddy_ratio": float("nan")}, "expected 1 to 4"),
        ({"buddy_slowdown": -1.0}, "expected a share such as 0.02"),
        ({"buddy_result": "no-such.json"}, "no-such.json"),
    ],
)
def test_bad_options_are_one_line(options: dict[str, float], expected: str) -> None:
    with pytest.raises(BuddysimError, match=expected):
        simulate("alexnet", 32, "titan-xp", "buddy-scaled", **options)


def test_another_result_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    for content in (
        "[]",
        '{"buddy": {}}',
        '{"buddy": {"compression.ratio": 1, "time_ps": 3}, "ideal": {"time_ps": 0}}',
    ):
        path.write_text(content)
        with pytest.raises(BuddysimError, match="with results of ideal and buddy"):
            simulate("alexnet", 32, "titan-xp", "buddy-scaled", buddy_result=str(path))
