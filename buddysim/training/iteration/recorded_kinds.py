"""What each storage of a recorded step is for, as memory is counted.

Logits and loss are what the output head and the loss allocate: in the forward pass all from the first matrix product
after the last block on, in the backward pass what the modules of these operations allocate, but what is as large as a
weight of the head: its gradient, which waits for that of an embedding with the same weight. A block is a module with a
number in its path. A record without blocks has no head: nothing tells it from other layers.
"""

from __future__ import annotations

from itertools import dropwhile, groupby

from buddysim.training.autograd.records import AllocationEvent, TracedOperation
from buddysim.training.autograd.tape import Tape
from buddysim.training.iteration.program import TensorKind

#: Kinds by what the tape calls them; the rest is short-lived.
_KINDS: dict[str, TensorKind] = {
    "parameter": "weights",
    "buffer": "weights",
    "master": "master_weights",
    "gradient": "weight_gradients",
    "optimizer": "optimizer_state",
    "gathered": "gathered_shards",
    "bucket": "gradient_buckets",
    "input": "inputs",
    "activation": "feature_maps",
    "workspace": "workspace",
}
#: Those that are logits or loss where the head or the loss allocates them.
_OF_THE_HEAD = ("activation", "temporary")


def kinds_of_storages(tape: Tape) -> list[TensorKind]:
    """Return the kind of each storage of a tape, by its number."""
    kinds: list[TensorKind] = [
        "weights" if record.kind == "gathered" and record.producer == "prefetch"
        else _KINDS.get(record.kind, "temporaries")
        for record in tape.storages
    ]  # fmt: skip
    head = _head(tape)
    operations = [tape.operations[index] for index in head]
    scopes = {one.scope for one in operations}
    weights = {
        operand.bytes
        for one in operations
        for operand in one.reads
        if tape.storages[operand.storage].kind in ("parameter", "gathered")
    }
    allocated: list[int] = []
    for event in tape.events:
        if isinstance(event, AllocationEvent):
            record = tape.storages[event.storage]
            if record.kind in _OF_THE_HEAD:
                if record.phase == "backward" and record.scope in scopes:
                    kinds[event.storage] = "weight_gradients" if record.bytes in weights else "logits"
                allocated.append(event.storage)
        elif isinstance(event, TracedOperation):
            if event.index in head:
                for storage in allocated:
                    kinds[storage] = "logits"
            allocated.clear()
    return kinds


def is_numbered(scope: str) -> bool:
    """Whether a module is, or lies in, one of a list."""
    return any(part.isdigit() for part in scope.split("."))


def _head(tape: Tape) -> set[int]:
    """Indices of the forward operations of output head and loss; those of each micro-step."""
    head: set[int] = set()
    for phase, group in groupby(tape.operations, key=lambda operation: operation.phase):
        operations = list(group)
        in_blocks = [position for position, one in enumerate(operations) if is_numbered(one.scope)]
        if phase == "forward" and in_blocks:
            head.update(one.index for one in dropwhile(lambda one: not one.products, operations[in_blocks[-1] + 1 :]))
    return head
