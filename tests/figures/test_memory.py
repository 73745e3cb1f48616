"""`plot memory` of a timeline: what it draws, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.figures.shared.memory_over_time import read_memory
from buddysim.plotting.memory_kinds import COUNTER, PEAK


def events() -> list[dict[str, Any]]:
    return [
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "oracle"}},
        {"ph": "X", "name": "conv1 forward", "pid": 0, "tid": 0, "ts": 1000, "dur": 3000, "args": {}},
        {"ph": "C", "name": COUNTER, "pid": 0, "ts": 1000, "args": {"weights": 3, "inputs": 4}},
        {"ph": "i", "name": PEAK, "pid": 0, "ts": 1000, "args": {"bytes": 7, "phase": "forward", "module": "conv1",
                                                                 "operation": None}},
    ]  # fmt: skip


def written(content: list[dict[str, Any]], folder: Path) -> Path:
    (folder / "t.json").write_text(json.dumps({"traceEvents": content}))
    return folder / "t.json"


def test_the_memory_of_a_timeline_is_read(tmp_path: Path) -> None:
    (scheme,) = read_memory(written(events(), tmp_path))
    assert (scheme.title, scheme.times_ms, scheme.end_ms) == ("oracle", [1.0], 4.0)
    assert scheme.bytes_by_kind == {"weights": [3], "inputs": [4]}
    assert (scheme.peak_ms, scheme.peak_bytes, scheme.peak_text) == (1.0, 7, "forward of conv1")


@pytest.mark.parametrize(
    ("index", "change", "message"),
    [
        (0, {"pid": "x"}, "traceEvents.0: pid: expected an integer, got 'x'"),
        (0, {"args": {}}, "traceEvents.0: args.name is missing"),
        (1, {"pid": 3}, "traceEvents.1: pid: expected that of an event 'process_name' before it, got 3"),
        (1, {"dur": -1}, "traceEvents.1: dur: expected at least 0, got -1"),
        (2, {"args": {"weights": "x"}}, "traceEvents.2: args.weights: expected a number, got 'x'"),
        (2, {"ts": 1e300}, "traceEvents.2: ts: expected at most"),
        (3, {"args": {"bytes": 3}}, "traceEvents.3: args.phase is missing"),
    ],
)
def test_an_event_of_another_kind_is_named(index: int, change: dict[str, Any], message: str, tmp_path: Path) -> None:
    content = events()
    content[index] |= change
    with pytest.raises(BuddysimError) as raised:
        read_memory(written(content, tmp_path))
    assert message in str(raised.value)


def test_every_step_has_the_same_kinds(tmp_path: Path) -> None:
    content = [*events(), {"ph": "C", "name": COUNTER, "pid": 0, "ts": 2000, "args": {"weights": 3}}]
    with pytest.raises(BuddysimError, match=r"traceEvents.4: args: expected the kinds of the events before it"):
        read_memory(written(content, tmp_path))
