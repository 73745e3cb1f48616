"""Snapshots as PyTorch dumps them, of programs that the reference model serves."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from buddysim.training.caching_allocator import AllocatorSettings
from buddysim.training.caching_allocator.driver import DeviceMemory
from tests.reference.training.ref_caching_allocator import RefCachingAllocator, RefOutOfMemory, RefPart, RefSegment

_STATES = {"allocated": "active_allocated", "pending": "active_pending_free", "free": "inactive"}
FORWARD = [{"name": "_call_impl", "filename": "torch/nn/modules/module.py", "line": 1}]
BACKWARD = [{"name": "backward", "filename": "torch/autograd/__init__.py", "line": 1}]
OPTIMIZER = [{"name": "_multi_tensor_adam", "filename": "torch/optim/adam.py", "line": 1}]
SETUP = [{"name": "_apply", "filename": "torch/nn/modules/module.py", "line": 1}]


class _NotingDriver(DeviceMemory):
    """A driver that notes what is taken from it and given back."""

    def __init__(self, capacity: int | None, trace: list[dict[str, Any]]) -> None:
        super().__init__(capacity)
        self.trace = trace

    def allocate(self, size: int) -> int | None:
        address = super().allocate(size)
        if address is not None:
            self.note("segment_alloc", address, size)
        return address

    def free(self, address: int, size: int) -> None:
        super().free(address, size)
        self.note("segment_free", address, size)

    def note(self, action: str, address: int, size: int, stream: int = 0, frames: object = ()) -> None:
        entry = {"action": action, "addr": address, "size": size, "stream": stream, "time_us": len(self.trace)}
        self.trace.append({**entry, "frames": list(frames)})  # type: ignore[call-overload]


class RecordedAllocator(RefCachingAllocator):
    """The reference model, with PyTorch's record of what it does."""

    def __init__(self, settings: AllocatorSettings, capacity: int | None = None) -> None:
        self.trace: list[dict[str, Any]] = []
        self.noting = _NotingDriver(capacity, self.trace)
        super().__init__(settings, self.noting)

    def serve(self, requested: int, stream: int = 0, frames: object = ()) -> int | None:
        """Allocate, with a record; None where memory is too little."""
        before, streams, pages = len(self.trace), self._streams(), self._pages()
        try:
            address = self.allocate(requested, stream)
        except RefOutOfMemory:
            self._note_streams(before, streams, stream)
            self._note_pages(pages)
            self.noting.note("oom", 0, requested, stream)
            del self.trace[-1]["addr"]
            return None
        self._note_streams(before, streams, stream)
        self._note_pages(pages)
        self.noting.note("alloc", address, requested, stream, frames)
        return address

    def give(self, address: int, *, complete: bool = True) -> None:
        """Free, with a record."""
        segment, part = self._part(address)
        if part.state == "allocated":
            self.noting.note("free_requested", address, part.requested, segment.stream)
            self.request_free(address)
        if complete:
            self.noting.note("free_completed", address, part.requested, segment.stream)
            self.complete_free(address)

    def release(self) -> None:
        """Empty the cache, with a record."""
        before, streams, pages = len(self.trace), self._streams(), self._pages()
        self.empty_cache()
        self._note_streams(before, streams)
        self._note_pages(pages)

    def _streams(self) -> dict[int, int]:
        """The stream of each segment by address."""
        return {segment.address: segment.stream for segment in self.segments}

    def _note_streams(self, first: int, streams: dict[int, int], stream: int = 0) -> None:
        """Give the driver's entries from `first` on the stream of their segment: a new one has that of the request."""
        for entry in self.trace[first:]:
            entry["stream"] = stream if entry["action"] == "segment_alloc" else streams[entry["addr"]]

    def _pages(self) -> dict[int, tuple[int, int]]:
        """Mapped pages of expandable segments: size and stream by address."""
        pages: dict[int, tuple[int, int]] = {}
        for segment in self.segments:
            page = self._page(segment.small)
            for part in segment.parts if segment.expandable else ():
                first = part.address - (part.address - segment.address) % page
                for address in range(first, part.address + part.size, page) if part.state != "unmapped" else ():
                    pages[address] = page, segment.stream
        return pages

    def _note_pages(self, before: dict[int, tuple[int, int]]) -> None:
        after = self._pages()
        for action, changed in (
            ("segment_unmap", {one: before[one] for one in before.keys() - after.keys()}),
            ("segment_map", {one: after[one] for one in after.keys() - before.keys()}),
        ):
            runs: list[list[int]] = []
            for address, (size, stream) in sorted(changed.items()):
                if runs and runs[-1][0] + runs[-1][1] == address and runs[-1][2] == stream:
                    runs[-1][1] += size
                else:
                    runs.append([address, size, stream])
            for address, size, stream in runs:
                self.noting.note(action, address, size, stream)

    def snapshot(self, dropped: int = 0) -> dict[str, Any]:
        """What ``torch.cuda.memory._snapshot`` returns, without the first events of the record."""
        return {
            "segments": [entry for segment in self.segments for entry in _ranges(segment)],
            "device_traces": [self.trace[dropped:]],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": self.settings.text()},
            "external_annotations": [],
        }

    def dump(self, path: Path, dropped: int = 0) -> Path:
        """Write it as ``torch.cuda.memory._dump_snapshot`` does."""
        path.write_bytes(pickle.dumps(self.snapshot(dropped)))
        return path


def _ranges(segment: RefSegment) -> list[dict[str, Any]]:
    """The entries of a segment: one for each range with memory."""
    ranges: list[list[RefPart]] = [[]]
    for part in segment.parts:
        if part.state == "unmapped":
            ranges.append([])
        else:
            ranges[-1].append(part)
    return [
        {
            "device": 0,
            "address": parts[0].address,
            "total_size": sum(part.size for part in parts),
            "stream": segment.stream,
            "segment_type": "small" if segment.small else "large",
            "segment_pool_id": (0, 0),
            "is_expandable": segment.expandable,
            "frames": [],
            "blocks": [
                {
                    "address": part.address,
                    "size": part.size,
                    "requested_size": part.requested,
                    "state": _STATES[part.state],
                    "frames": [],
                }
                for part in parts
            ],
        }
        for parts in ranges
        if parts
    ]
