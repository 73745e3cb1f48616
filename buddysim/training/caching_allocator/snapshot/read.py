"""Reads a file of ``torch.cuda.memory._dump_snapshot``: the segments at its end, and the record of what led to them.

The fields are those of ``torch/csrc/cuda/Module.cpp`` and ``memory_snapshot.cpp`` of PyTorch 2.1 to 2.13; older ones
lack some. The record is a ring of fixed length, so its beginning may be missing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Required

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from buddysim.base.budget import within_budget
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.plain_pickle import read_plain_pickle
from buddysim.base.schema import checked_type
from buddysim.training.caching_allocator.allocator import DEFAULT_OWNER, Owner
from buddysim.training.caching_allocator.blocks import BlockState
from buddysim.training.caching_allocator.snapshot.phases import PhaseReader
from buddysim.training.options.allocator_settings import AllocatorSettings

WHAT = "memory snapshot"
MAX_BYTES = 1 << 30
"""Largest file."""
MAX_EVENTS = 5_000_000
"""Events, blocks and segments in a snapshot, at most."""
_LARGEST = 1 << 48

SnapshotAction = Literal[
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom",
    "snapshot",
]  # fmt: skip
_STATES: Mapping[str, BlockState] = {
    "active_allocated": "allocated",
    "active_pending_free": "pending",
    "active_awaiting_free": "pending",
    "inactive": "free",
}


_ADAPT = ConfigDict(strict=True)
Address = Annotated[int, Field(ge=0, lt=_LARGEST)]


class SnapshotEventFields(TypedDict, total=False):
    """The keys of an event that count; of an ``oom``, `addr` is missing."""

    __pydantic_config__ = _ADAPT  # type: ignore[misc]

    action: Required[SnapshotAction]
    addr: Address
    size: Required[Address]
    stream: int
    frames: object


class SnapshotBlockFields(TypedDict, total=False):
    """The keys of a block that count."""

    __pydantic_config__ = _ADAPT  # type: ignore[misc]

    size: Required[Address]
    requested_size: Address
    state: Required[Literal["active_allocated", "active_pending_free", "active_awaiting_free", "inactive"]]


class SnapshotSegmentFields(TypedDict, total=False):
    """The keys of a segment that count."""

    __pydantic_config__ = _ADAPT  # type: ignore[misc]

    device: int
    address: Required[Address]
    total_size: Required[Address]
    stream: int
    segment_type: object
    is_expandable: object
    segment_pool_id: object
    blocks: Required[list[object]]


class SnapshotFields(TypedDict, total=False):
    """The keys of a snapshot that count; `EVENT` and `SEGMENT` check the entries one by one."""

    __pydantic_config__ = _ADAPT  # type: ignore[misc]

    device_traces: Required[Annotated[list[list[object]], Field(min_length=1, max_length=1024)]]
    segments: Required[list[object]]
    allocator_settings: dict[str, object] | None


EVENT = TypeAdapter(SnapshotEventFields)
SEGMENT = TypeAdapter(SnapshotSegmentFields)
BLOCK = TypeAdapter(SnapshotBlockFields)
SNAPSHOT = TypeAdapter(SnapshotFields)


class SnapshotEvent(NamedTuple):
    """An entry of the record.

    Attributes
    ----------
    address : of a block or segment; of an ``oom``, 0
    size : bytes requested; of a segment, its bytes
    phase : of the training step, as its stack shows; "" where it has none
    """

    action: SnapshotAction
    address: int
    size: int
    stream: int
    phase: str


class SnapshotBlock(NamedTuple):
    """A block as it is at the end."""

    address: int
    size: int
    requested: int
    state: BlockState


class SnapshotSegment(NamedTuple):
    """A segment, or a range of an expandable one that has memory, as it is at the end."""

    address: int
    size: int
    stream: int
    small: bool
    expandable: bool
    owner: Owner
    blocks: tuple[SnapshotBlock, ...]


@dataclass(frozen=True)
class MemorySnapshot:
    """What a snapshot says of one GPU.

    Attributes
    ----------
    settings : of the allocator that was recorded
    """

    device: int
    segments: tuple[SnapshotSegment, ...]
    events: tuple[SnapshotEvent, ...]
    settings: AllocatorSettings


@within_budget
def read_snapshot(path: str | os.PathLike[str]) -> MemorySnapshot:
    """Read the GPU with the longest record of a snapshot.

    Raises
    ------
    BuddysimError
        where the file can't be read, isn't a plain pickle, or isn't a snapshot with a record
    """
    where = f"{os.fspath(path)}: not a {WHAT}"
    content = checked_type(SNAPSHOT, read_plain_pickle(path, WHAT, MAX_BYTES), where)
    traces = content["device_traces"]
    lengths = [len(trace) for trace in traces]
    device = lengths.index(max(lengths))
    if not lengths[device]:
        raise BuddysimError(f"{where}: no record: expected torch.cuda.memory._record_memory_history() before the run")
    if lengths[device] > MAX_EVENTS:
        raise BuddysimError(f"{where}: {lengths[device]} events: expected at most {MAX_EVENTS}")
    segments = _segments(content["segments"], device, where)
    phases, seen = PhaseReader(), dict[int, SnapshotEvent]()
    for index, entry in enumerate(traces[device]):
        if id(entry) not in seen:
            seen[id(entry)] = _event(entry, f"{where}: event {index}", phases)
    events = tuple(seen[id(entry)] for entry in traces[device])
    return MemorySnapshot(device, segments, events, _settings(content.get("allocator_settings"), where))


def _event(content: object, where: str, phases: PhaseReader) -> SnapshotEvent:
    entry = checked_type(EVENT, content, where)
    action, address = entry["action"], entry.get("addr")
    if action in ("oom", "snapshot"):
        address = 0
    elif address is None:
        raise BuddysimError(f"{where}: addr is missing")
    return SnapshotEvent(action, address, entry["size"], entry.get("stream", 0), phases.phase_of(entry.get("frames")))


def _segments(entries: list[object], device: int, where: str) -> tuple[SnapshotSegment, ...]:
    segments: list[SnapshotSegment] = []
    left, seen = MAX_EVENTS, set[int]()
    for index, content in enumerate(entries):
        at = f"{where}: segment {index}"
        entry = checked_type(SEGMENT, content, at)
        if entry.get("device", 0) != device:
            continue
        left -= 1 + len(entry["blocks"])
        if left < 0:
            raise BuddysimError(f"{where}: more than {MAX_EVENTS} segments and blocks")
        blocks = content["blocks"]  # type: ignore[index]  # checked, and not a copy
        if id(blocks) in seen:
            raise BuddysimError(f"{at}: blocks: another segment has the same list")
        seen.add(id(blocks))
        segments.append(
            SnapshotSegment(
                entry["address"],
                entry["total_size"],
                entry.get("stream", 0),
                entry.get("segment_type") == "small",
                entry.get("is_expandable") is True,
                _owner(entry.get("segment_pool_id")),
                _blocks(entry["blocks"], entry["address"], at),
            )
        )
    return tuple(segments)


def _blocks(entries: list[object], address: int, where: str) -> tuple[SnapshotBlock, ...]:
    blocks: list[SnapshotBlock] = []
    for index, content in enumerate(entries):
        entry = checked_type(BLOCK, content, f"{where}: blocks[{index}]")
        size = entry["size"]
        blocks.append(SnapshotBlock(address, size, entry.get("requested_size", size), _STATES[entry["state"]]))
        address += size
    return tuple(blocks)


def _settings(entry: Mapping[str, object] | None, where: str) -> AllocatorSettings:
    """The settings of a run; its text if there is one, with what the run's own fields say of expandable segments."""
    if entry is None:
        return AllocatorSettings()
    text = entry.get("PYTORCH_CUDA_ALLOC_CONF") or entry.get("PYTORCH_ALLOC_CONF") or ""
    if not isinstance(text, str):
        raise BuddysimError(f"{where}: allocator_settings: expected a text, got {shortened(text)}")
    return AllocatorSettings.parse(text)


def _owner(entry: Any) -> Owner:
    if isinstance(entry, tuple | list) and len(entry) == 2 and all(isinstance(one, int) for one in entry):
        return int(entry[0]), int(entry[1])
    return DEFAULT_OWNER
