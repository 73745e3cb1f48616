"""Traces of PyTorch's profiler are read within limits; other files are refused in one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.training.against.kinds_of_files import kind_of_measurement
from buddysim.training.against.trace_file import read_trace

OPERATOR: dict[str, Any] = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 5, "dur": 3}


def written(path: Path, content: Any, *, compressed: bool = False) -> Path:
    raw = json.dumps(content).encode()
    path.write_bytes(gzip.compress(raw) if compressed else raw)
    return path


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("bare", [False, True])
def test_events_that_count(tmp_path: Path, compressed: bool, bare: bool) -> None:
    """Names of old and new versions; metadata, flows and Python's own calls are passed over."""
    events = [
        {**OPERATOR, "args": {"External id": 7, "Input Dims": [[1]]}},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 1, "tid": 2, "ts": 1},
        {**OPERATOR, "cat": "python_function", "ts": "?"},
        {**OPERATOR, "cat": "Kernel", "name": "gemm", "tid": 7, "args": {"correlation": 3, "external id": 7}},
        {**OPERATOR, "cat": "user_annotation", "name": "ProfilerStep#2", "ts": 0, "dur": 100},
        {**OPERATOR, "cat": "user_annotation", "name": "Optimizer.step#AdamW.step"},
    ]
    path = written(tmp_path / "t.json", events if bare else {"traceEvents": events}, compressed=compressed)
    trace = read_trace(path)
    assert [(event.kind, event.name, event.external, event.correlation) for event in trace.events] == [
        ("step", "ProfilerStep#2", None, None),
        ("operator", "aten::mm", 7, None),
        ("kernel", "gemm", 7, 3),
    ]
    assert trace.gpu is None
    assert kind_of_measurement(path) == "profiler trace"


def test_the_gpu_has_its_name(tmp_path: Path) -> None:
    content = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": [OPERATOR]}
    assert read_trace(written(tmp_path / "t.json", content)).gpu == "NVIDIA H100"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({}, "no list of traceEvents"),
        ({"traceEvents": {}}, "no list of traceEvents"),
        (3, "no list of traceEvents"),
        ({"traceEvents": [{"ph": "X", "cat": "cpu_op"}]}, "event 0: name is missing"),
        ({"traceEvents": [OPERATOR, {**OPERATOR, "ts": "1"}]}, "event 1: ts: expected a number, got '1'"),
        ({"traceEvents": [{**OPERATOR, "dur": True}]}, "event 0: dur: expected a number, got True"),
        ({"traceEvents": [{**OPERATOR, "cat": "user_annotation", "name": "ProfilerStep#1"}]}, "no operators"),
        ({"traceEvents": []}, "no operators and no kernels"),
    ],
)
def test_what_is_no_trace(tmp_path: Path, content: Any, expected: str) -> None:
    with pytest.raises(BuddysimError, match=expected) as refused:
        read_trace(written(tmp_path / "t.json", content))
    assert "\n" not in str(refused.value)


def test_files_that_are_cut_or_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(tmp_path / "t.json.gz", {"traceEvents": [OPERATOR] * 100}, compressed=True).read_bytes()
    (tmp_path / "cut.gz").write_bytes(whole[:-9])
    with pytest.raises(BuddysimError, match=r"cut\.gz: the gzip stream is damaged or cut off"):
        read_trace(tmp_path / "cut.gz")
    (tmp_path / "bad.gz").write_bytes(whole[:2] + b"\xff" + whole[3:])
    with pytest.raises(BuddysimError, match=r"bad\.gz: the gzip stream is damaged"):
        read_trace(tmp_path / "bad.gz")
    monkeypatch.setattr("buddysim.training.against.trace_file.LARGEST_TEXT", 1000)
    with pytest.raises(BuddysimError, match="longer than 1000 bytes when it is unpacked"):
        read_trace(tmp_path / "t.json.gz")


def test_other_files_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_bytes(b"\x80\x04}.")
    assert kind_of_measurement(tmp_path / "s.json") == "memory snapshot"
    (tmp_path / "x.txt").write_text("hello")
    with pytest.raises(BuddysimError, match=r"neither a PyTorch profiler trace .* nor a memory snapshot"):
        kind_of_measurement(tmp_path / "x.txt")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)


@settings(max_examples=150)
@given(st.lists(st.dictionaries(st.sampled_from([*OPERATOR, "args"]), VALUES, max_size=4), max_size=4), st.data())
def test_any_event_is_read_or_refused_in_a_line(
    tmp_path_factory: pytest.TempPathFactory, changes: list[dict[str, Any]], data: st.DataObject
) -> None:
    events = [{**OPERATOR, **change} for change in changes]
    path = written(tmp_path_factory.mktemp("fuzz") / "t.json", {"traceEvents": events})
    if data.draw(st.booleans()):
        raw = bytearray(path.read_bytes())
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(bytes(raw))
    try:
        read_trace(path)
    except BuddysimError as error:
        assert "\n" not in str(error)
