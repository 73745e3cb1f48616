"""Reads the trace that PyTorch's profiler exports: Kineto's events in Chrome's JSON format, also as ``.gz``.

What counts are complete events (``"ph": "X"``) of operators, kernels, copies, calls of the CUDA runtime, and the
profiler's marks of steps. Names of categories differ between versions (``cpu_op`` and ``Operator``, ``kernel`` and
``Kernel``): libkineto, ``output_json.cpp`` and ``ActivityType.cpp``. All else is passed over.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Required

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.inputs import read_bytes
from buddysim.base.parsers.streams import gunzipped
from buddysim.base.schema import checked_type
from buddysim.base.textfile import decoded, parse_json

LARGEST_FILE = 1 << 29
LARGEST_TEXT = 1 << 30
_WHAT = "PyTorch profiler trace"

EventKind = Literal["operator", "kernel", "copy", "runtime", "step"]

_KINDS: dict[str, EventKind] = {
    "cpu_op": "operator",
    "operator": "operator",
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "copy",
    "memcpy": "copy",
    "memset": "copy",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "runtime": "runtime",
    "user_annotation": "step",
}
_STEP = "ProfilerStep#"


class TraceEventFields(TypedDict, total=False):
    """The keys of a complete event that must have a type; times are in microseconds."""

    __pydantic_config__ = ConfigDict(strict=True, allow_inf_nan=False)  # type: ignore[misc]

    name: Required[str]
    ts: Required[float]
    dur: float


EVENT = TypeAdapter(TraceEventFields)


class TraceEvent(NamedTuple):
    """A complete event.

    Attributes
    ----------
    start_us, duration_us : microseconds
    thread : process and thread; of a kernel, device and stream
    external : number that an operator shares with what it launched; None where it has none
    correlation : number that a launch shares with its kernel; None where it has none
    """

    kind: EventKind
    name: str
    start_us: float
    duration_us: float
    thread: tuple[str, str]
    external: int | None
    correlation: int | None

    @property
    def end_us(self) -> float:
        return self.start_us + self.duration_us


@dataclass(frozen=True)
class ProfilerTrace:
    """The events of a trace that count, each kind by start.

    Attributes
    ----------
    gpu : name of the first GPU; None where the trace names none
    """

    gpu: str | None
    events: tuple[TraceEvent, ...]

    def of_kind(self, *kinds: EventKind) -> list[TraceEvent]:
        """The events of some kinds."""
        return [event for event in self.events if event.kind in kinds]


@within_budget
def read_trace(path: str | os.PathLike[str]) -> ProfilerTrace:
    """Read a trace.

    Raises
    ------
    BuddysimError
        where it can't be read, is too long, isn't JSON, or isn't a trace of PyTorch's profiler
    """
    where = os.fspath(path)
    raw = read_bytes(path, _WHAT, LARGEST_FILE)
    if raw[:2] == b"\x1f\x8b":
        raw = gunzipped(raw, where, LARGEST_TEXT)
    content = parse_json(decoded(raw, f"{where}: not a {_WHAT}"), where)
    events = content.get("traceEvents") if isinstance(content, dict) else content
    if not isinstance(events, list):
        raise BuddysimError(f"{where}: not a {_WHAT}: no list of traceEvents")
    selected = [event for number, one in enumerate(events) if (event := _event(one, number, where)) is not None]
    if not any(event.kind in ("operator", "kernel") for event in selected):
        raise BuddysimError(f"{where}: no operators and no kernels: expected a {_WHAT} of a training step")
    selected.sort(key=lambda event: (event.start_us, -event.duration_us))
    return ProfilerTrace(_gpu(content), tuple(selected))


def _event(content: Any, number: int, where: str) -> TraceEvent | None:
    """Return an event; None where it doesn't count."""
    if not isinstance(content, dict) or content.get("ph") != "X" or not isinstance(content.get("cat"), str):
        return None
    kind = _KINDS.get(content["cat"].lower())
    name = content.get("name")
    if kind is None or (kind == "step" and not (isinstance(name, str) and name.startswith(_STEP))):
        return None
    fields = checked_type(EVENT, content, f"{where}: event {number}")
    values = content.get("args")
    arguments = values if isinstance(values, dict) else {}
    return TraceEvent(
        kind,
        fields["name"],
        fields["ts"],
        max(0.0, fields.get("dur", 0.0)),
        (str(content.get("pid")), str(content.get("tid"))),
        _number(arguments.get("External id", arguments.get("external id"))),
        _number(arguments.get("correlation")),
    )


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _gpu(content: Any) -> str | None:
    devices = content.get("deviceProperties") if isinstance(content, dict) else None
    if not isinstance(devices, list) or not devices or not isinstance(devices[0], dict):
        return None
    name = devices[0].get("name")
    return name if isinstance(name, str) else None
