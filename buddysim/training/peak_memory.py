"""What holds the GPU's memory at the peak of an iteration, when the peak is reached and by what.

All bytes are integers, and those of all kinds add up to the peak of what is allocated. Of a recorded step, the peak is
the first instant at which the most bytes live, and saved tensors are told apart by the module that saves them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from buddysim.training.autograd.blocks import divide_path
from buddysim.training.autograd.records import AllocationEvent, FreeEvent
from buddysim.training.autograd.tape import Tape
from buddysim.training.iteration.recorded_kinds import kinds_of_storages


@dataclass(frozen=True)
class PeakMemory:
    """The peak of one iteration.

    Attributes
    ----------
    start_ps : start of the step that reaches it
    phase : ``"forward"``, ``"backward"``, ``"optimizer"``, or another pass of a scheme
    module : of a recorded step, the path of the module; else the name of the layer
    operation : of a recorded step, the operator that allocates, by PyTorch's name; None of layers
    saved_by_layer_kind : bytes saved for backward by the name of the module in its block, the largest first
    saved_by_block : bytes saved for backward by the block's path; what lies outside of blocks by the module's
    """

    start_ps: int
    phase: str
    module: str
    operation: str | None
    saved_by_layer_kind: dict[str, int] = field(default_factory=dict)
    saved_by_block: dict[str, int] = field(default_factory=dict)


def peak_of_tape(tape: Tape, start_ps: int = 0) -> PeakMemory:
    """Return the peak of a record; `start_ps` is when it is reached."""
    reached = _first_peak(tape)
    live = [one for one in tape.storages if one.allocated <= reached and (one.freed is None or one.freed > reached)]
    last = max(live, key=lambda one: one.allocated, default=None)
    kinds, savers = kinds_of_storages(tape), saving_modules(tape)
    saved = [one for one in live if kinds[one.number] == "feature_maps"]
    by_layer_kind, by_block = Counter[str](), Counter[str]()
    for one in saved:
        module = savers.get(one.number, one.scope)
        block, kind = divide_path(module)
        by_layer_kind[kind] += one.bytes
        by_block[block] += one.bytes
    return PeakMemory(
        start_ps, last.phase if last else "setup", last.scope if last else "", last.producer if last else None,
        dict(by_layer_kind.most_common()), dict(by_block),
    )  # fmt: skip


def _first_peak(tape: Tape) -> int:
    """Index of the first event after which the most bytes live."""
    live = peak = reached = 0
    for index, event in enumerate(tape.events):
        if isinstance(event, AllocationEvent):
            live += event.bytes
            if live > peak:
                peak, reached = live, index
        elif isinstance(event, FreeEvent):
            live -= event.bytes
    return reached


def saving_modules(tape: Tape) -> dict[int, str]:
    """Return the path of the module that saves each storage first, by the storage's number."""
    modules: dict[int, str] = {}
    for one in tape.saved:
        modules.setdefault(one.storage, one.scope)
    return modules
