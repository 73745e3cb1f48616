"""From when to when memory is in use, in which phases of a training step, and hence for what.

A snapshot doesn't say what a block is for. Phase and lifetime do, by one rule for snapshots and for recorded steps.
What is allocated in the forward pass and lives into the backward pass is saved for it. What the backward pass leaves
for the optimizer is a gradient, what an optimizer keeps is its state. What is allocated before any of them is a weight,
a buffer or an input. Everything else is temporary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from buddysim.training.autograd.records import AllocationEvent, FreeEvent
from buddysim.training.autograd.tape import Tape
from buddysim.training.caching_allocator.rounding import rounded_size
from buddysim.training.caching_allocator.snapshot.initial_state import StateBefore
from buddysim.training.caching_allocator.snapshot.read import MemorySnapshot
from buddysim.training.options.allocator_settings import AllocatorSettings

KINDS = ("weights and inputs", "saved activations", "gradients", "optimizer state", "temporaries")


class Lifetime(NamedTuple):
    """A block in use.

    Attributes
    ----------
    size : bytes of the request, rounded
    start, end : position among all allocations and frees; `end` is None for what isn't freed
    phase, end_phase : at these positions
    """

    size: int
    start: int
    end: int | None
    phase: str
    end_phase: str

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        if self.phase in ("", "setup"):
            return "weights and inputs"
        if self.phase == self.end_phase and self.end is not None:
            return "temporaries"
        return {"forward": "saved activations", "backward": "gradients"}.get(self.phase, "optimizer state")


@dataclass(frozen=True)
class PeakContents:
    """What is in use when the most is.

    Attributes
    ----------
    peak : bytes
    position, phase : where that is first reached
    by_kind : bytes by `KINDS`
    sizes : how many blocks of a kind and a size
    """

    peak: int
    position: int
    phase: str
    by_kind: dict[str, int]
    sizes: Counter[tuple[str, int]]


def lifetimes_of_tape(tape: Tape, settings: AllocatorSettings, workspace: int = 0) -> list[Lifetime]:
    """Return the lifetimes of a recorded step's storages, and of cuBLAS' workspaces.

    Parameters
    ----------
    workspace : bytes that cuBLAS takes at the first product of each thread, and never gives back
    """
    phases = [record.phase for record in tape.storages]
    started: dict[int, int] = {}
    ended: dict[int, tuple[int, str]] = {}
    phase = "setup"
    made: list[Lifetime] = []
    threads: set[bool] = set()
    for index, event in enumerate(tape.events):
        if isinstance(event, AllocationEvent):
            started[event.storage] = index
            phase = phases[event.storage]
        elif isinstance(event, FreeEvent):
            ended[event.storage] = index, phase
        else:
            phase = event.phase
            if workspace and event.products and (phase == "backward") not in threads:
                threads.add(phase == "backward")
                made.append(Lifetime(rounded_size(workspace, settings), index, None, phase, ""))
    for number, start in started.items():
        record = tape.storages[number]
        if record.bytes:
            end, end_phase = ended.get(number, (None, ""))
            made.append(Lifetime(rounded_size(record.bytes, settings), start, end, record.phase, end_phase))
    return made


def lifetimes_of_snapshot(snapshot: MemorySnapshot, before: StateBefore) -> list[Lifetime]:
    """Return the lifetimes of a snapshot's blocks; those in use before the record begins are of the setup."""
    settings = snapshot.settings
    used: dict[int, tuple[int, int, str]] = {}
    for segment in before.segments:
        used |= {one.address: (rounded_size(one.requested, settings), -1, "setup") for one in segment.blocks}
    with_stacks = any(event.phase for event in snapshot.events)
    made = []
    phase = "setup"
    for index, event in enumerate(snapshot.events):
        if event.action == "alloc":
            phase = event.phase or ("backward" if with_stacks else "")
            used[event.address] = rounded_size(event.size, settings), index, phase
        elif event.action == "free_completed" and event.address in used:
            size, start, began = used.pop(event.address)
            made.append(Lifetime(size, start, index, began, phase))
    made += [Lifetime(size, start, None, began, "") for size, start, began in used.values()]
    return made


def peak_contents(lifetimes: Iterable[Lifetime]) -> PeakContents:
    """Return what is in use at the peak of all lifetimes together."""
    every = list(lifetimes)
    changes = [(one.start, one.size, one.phase) for one in every]
    changes += [(one.end, -one.size, one.end_phase) for one in every if one.end is not None]
    peak = position = total = 0
    phase = ""
    for at, change, in_phase in sorted(changes):
        total += change
        if total > peak:
            peak, position, phase = total, at, in_phase
    living = [one for one in every if one.start <= position and (one.end is None or one.end > position)]
    by_kind = dict.fromkeys(KINDS, 0)
    for one in living:
        by_kind[one.kind] += one.size
    return PeakContents(peak, position, phase, by_kind, Counter((one.kind, one.size) for one in living))
