"""The contents of a trace file as plain objects. Sizes are bytes, addresses are the program's virtual ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from buddysim.compress import ENTRY_BYTES
from buddysim.trace.format import WARP_THREADS

Dim3: TypeAlias = tuple[int, int, int]

#: How the assumption about the accesses begins in a trace of a program without warps: whether its times mean anything.
DERIVED_ACCESSES: Final = "Derived, not captured: "
#: Subjects of assumptions by other names in existing trace files.
_FORMER_SUBJECTS: Final = {"compute_gaps": "gaps"}


@dataclass(frozen=True)
class Provenance:
    """The origin of a trace, and its assumptions about facts that the capture did not record.

    Parameters
    ----------
    tool, version : what made the file
    source : what the trace was made from
    licence : of the source
    command : the capture or conversion command
    assumptions : sentences by subject, for example ``{"registers": "Registers are not captured: .."}``; a text that
        begins with "none:" means that the capture recorded everything
    """

    tool: str
    version: str = ""
    source: str = ""
    licence: str = ""
    command: str = ""
    assumptions: dict[str, str] = field(default_factory=dict)

    def assumes(self, subject: str) -> bool:
        """Whether the capture assumed anything about a subject, such as ``"compute_gaps"``."""
        text = self.assumptions.get(subject) or self.assumptions.get(_FORMER_SUBJECTS.get(subject, subject))
        return text is not None and not text.startswith("none:")


@dataclass
class Allocation:
    """A range of memory, live for ``events[alloc_event:free_event]``; ``free_event`` is None if it is never freed."""

    index: int
    name: str
    base: int
    bytes: int
    space: Literal["device", "host"] = "device"
    alloc_event: int = 0
    free_event: int | None = None

    @property
    def end(self) -> int:
        """First address after it."""
        return self.base + self.bytes

    @property
    def first_line(self) -> int:
        """Number of its first line: address / 128."""
        return self.base // ENTRY_BYTES

    @property
    def entries(self) -> int:
        """128 B entries, the last one possibly partial."""
        return -(-self.bytes // ENTRY_BYTES)

    def live_at(self, event: int) -> bool:
        return self.alloc_event <= event and (self.free_event is None or event < self.free_event)


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """A launch of ``trace.kernels[kernel]``."""

    kernel: int


@dataclass(frozen=True, slots=True)
class Memcpy:
    """A copy.

    Attributes
    ----------
    kind : direction, to the device (``htod``), to the host (``dtoh``) or within the device (``dtod``)
    address : on the device; of ``dtod``: the destination
    bytes : copied
    source : address of the source; None where it isn't known
    stream : in whose order it runs; 0: after everything before it, and before everything behind it
    host_memory : whether the host's side is pinned; None where that isn't known
    latency_ps : time from the call to the first byte; None where it isn't known
    """

    kind: Literal["htod", "dtoh", "dtod"]
    address: int
    bytes: int
    source: int | None = None
    stream: int = 0
    host_memory: Literal["pageable", "pinned"] | None = None
    latency_ps: int | None = None


@dataclass(frozen=True, slots=True)
class Memset:
    """A fill with the byte `value`, None where it isn't one byte repeated, or not known; `stream` as of `Memcpy`."""

    address: int
    bytes: int
    value: int | None
    stream: int = 0


Event: TypeAlias = KernelLaunch | Memcpy | Memset


class ChunkRef(NamedTuple):
    """Position of a chunk of whole thread blocks in the file, and its counts."""

    offset: int
    first_block: int
    n_blocks: int
    n_warps: int
    n_ops: int
    n_lines: int
    encoded_bytes: int
    memory_instructions: int
    warp_instructions: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Decoded records of whole thread blocks; `records.py` has the dtypes."""

    blocks: npt.NDArray[np.void]
    warps: npt.NDArray[np.void]
    ops: npt.NDArray[np.void]
    lines: npt.NDArray[np.uint64]


def warps_per_block(block: Dim3) -> int:
    """Warps of a thread block of these dimensions."""
    return -(-(block[0] * block[1] * block[2]) // WARP_THREADS)
