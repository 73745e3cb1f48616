"""Reads a file of ``torch.cuda.memory._dump_snapshot``: the segments at its end, and the record of what led to them.

The fields are those of ``torch/csrc/cuda/Module.cpp`` and ``memory_snapshot.cpp`` of PyTorch 2.1 to 2.13; older ones
lack some. The record is a ring of fixed length, so its beginning may be missing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.plain_pickle import read_plain_pickle
from buddysim.training.caching_allocator.allocator import DEFAULT_OWNER, Owner
from buddysim.training.caching_allocator.blocks import BlockState
from buddysim.training.caching_allocator.settings import AllocatorSettings
from buddysim.training.caching_allocator.snapshot.phases import phase_of

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
_ACTIONS = frozenset(SnapshotAction.__args__)  # type: ignore[attr-defined]
_STATES: Mapping[str, BlockState] = {
    "active_allocated": "allocated",
    "active_pending_free": "pending",
    "active_awaiting_free": "pending",
    "inactive": "free",
}


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


def read_snapshot(path: str | os.PathLike[str]) -> MemorySnapshot:
    """Read the GPU with the longest record of a snapshot.

    Raises
    ------
    BuddysimError
        where the file can't be read, isn't a plain pickle, or isn't a snapshot with a record
    """
    content = read_plain_pickle(path, WHAT, MAX_BYTES)
    try:
        return _snapshot(content)
    except _WrongError as error:
        raise BuddysimError(f"{os.fspath(path)}: not a {WHAT}: {error}") from None


class _WrongError(Exception):
    """A part of a snapshot that is missing or of another kind."""


def _snapshot(content: Any) -> MemorySnapshot:
    content = _checked(content, dict, "the whole")
    traces = _checked(content.get("device_traces"), list, "device_traces")
    if not traces or len(traces) > 1024:
        raise _WrongError("device_traces: expected a list with an entry for each GPU")
    lengths = [len(_checked(trace, list, "device_traces")) for trace in traces]
    device = lengths.index(max(lengths))
    if not lengths[device]:
        raise _WrongError("no record: expected torch.cuda.memory._record_memory_history() before the run")
    if lengths[device] > MAX_EVENTS:
        raise _WrongError(f"{lengths[device]} events: expected at most {MAX_EVENTS}")
    segments = _segments(_checked(content.get("segments"), list, "segments"), device)
    events = tuple(_event(entry, index) for index, entry in enumerate(traces[device]))
    return MemorySnapshot(device, segments, events, _settings(content.get("allocator_settings")))


def _event(entry: Any, index: int) -> SnapshotEvent:
    where = f"event {index}"
    entry = _checked(entry, dict, where)
    action = entry.get("action")
    if action not in _ACTIONS:
        raise _WrongError(f"{where}: action {shortened(action)}")
    address = 0 if action in ("oom", "snapshot") else _number(entry, "addr", where)
    return SnapshotEvent(
        action, address, _number(entry, "size", where), _stream(entry, where), phase_of(entry.get("frames"))
    )


def _segments(entries: list[Any], device: int) -> tuple[SnapshotSegment, ...]:
    segments: list[SnapshotSegment] = []
    left = MAX_EVENTS
    for index, entry in enumerate(entries):
        where = f"segment {index}"
        entry = _checked(entry, dict, where)
        if entry.get("device", 0) != device:
            continue
        blocks = _checked(entry.get("blocks"), list, f"{where}: blocks")
        left -= 1 + len(blocks)
        if left < 0:
            raise _WrongError(f"more than {MAX_EVENTS} segments and blocks")
        address = _number(entry, "address", where)
        segments.append(
            SnapshotSegment(
                address,
                _number(entry, "total_size", where),
                _stream(entry, where),
                entry.get("segment_type") == "small",
                entry.get("is_expandable") is True,
                _owner(entry.get("segment_pool_id")),
                _blocks(blocks, address, where),
            )
        )
    return tuple(segments)


def _blocks(entries: list[Any], address: int, where: str) -> tuple[SnapshotBlock, ...]:
    blocks: list[SnapshotBlock] = []
    for entry in entries:
        entry = _checked(entry, dict, f"{where}: block")
        size = _number(entry, "size", where)
        state = _STATES.get(_checked(entry.get("state"), str, f"{where}: state"))
        if state is None:
            raise _WrongError(f"{where}: state {shortened(entry.get('state'))}")
        requested = _number(entry, "requested_size", where) if "requested_size" in entry else size
        blocks.append(SnapshotBlock(address, size, requested, state))
        address += size
    return tuple(blocks)


def _settings(entry: Any) -> AllocatorSettings:
    """The settings of a run; its text if there is one, with what the run's own fields say of expandable segments."""
    if not isinstance(entry, dict):
        return AllocatorSettings()
    text = entry.get("PYTORCH_CUDA_ALLOC_CONF") or entry.get("PYTORCH_ALLOC_CONF") or ""
    return AllocatorSettings.parse(_checked(text, str, "allocator_settings"))


def _owner(entry: Any) -> Owner:
    if isinstance(entry, tuple | list) and len(entry) == 2 and all(isinstance(one, int) for one in entry):
        return int(entry[0]), int(entry[1])
    return DEFAULT_OWNER


def _stream(entry: dict[str, Any], where: str) -> int:
    stream = entry.get("stream", 0)
    if type(stream) is not int:
        raise _WrongError(f"{where}: stream: expected an integer")
    return stream


def _number(entry: dict[str, Any], key: str, where: str) -> int:
    value = entry.get(key)
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise _WrongError(f"{where}: {key}: expected an integer from 0 to 2^48")
    return value


def _checked(value: Any, kind: type[Any], where: str) -> Any:
    if type(value) is not kind:
        raise _WrongError(f"{where}: expected a {kind.__name__}")
    return value
