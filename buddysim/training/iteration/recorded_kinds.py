"""What each storage of a recorded step is for, as memory is counted.

Logits and loss are what the output head and the loss allocate: in the forward pass all from the first matrix product
after the last block on, in the backward pass what the modules of these operations allocate, but the gradients of the
head's weights, which wait for that of an embedding with the same weight, or for a cast. Sizes don't tell these apart:
a product of the backward pass that reads no weight gives one. A block is a module with a number in its path. A record
without blocks has no head: nothing tells it from other layers.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import dropwhile, groupby
from weakref import WeakKeyDictionary

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
    "held": "inputs",
    "activation": "feature_maps",
    "workspace": "workspace",
}
#: Those that are logits or loss where the head or the loss allocates them.
_OF_THE_HEAD = ("activation", "temporary")
#: Of tapes that are still in use.
_known: WeakKeyDictionary[Tape, list[TensorKind]] = WeakKeyDictionary()


def kinds_of_storages(tape: Tape) -> list[TensorKind]:
    """Return the kind of each storage of a tape whose steps are over, by its number."""
    if tape not in _known:
        _known[tape] = _kinds(tape)
    return _known[tape]


def _kinds(tape: Tape) -> list[TensorKind]:
    kinds: list[TensorKind] = [
        "weights" if record.kind == "gathered" and record.producer == "prefetch"
        else _KINDS.get(record.kind, "temporaries")
        for record in tape.storages
    ]  # fmt: skip
    head = _head(tape)
    operations = [tape.operations[index] for index in head]
    scopes = {one.scope for one in operations}
    gradients = _weight_gradients(tape, scopes)
    allocated: list[int] = []
    for event in tape.events:
        if isinstance(event, AllocationEvent):
            record = tape.storages[event.storage]
            if record.kind in _OF_THE_HEAD:
                if record.phase == "backward" and record.scope in scopes:
                    kinds[event.storage] = "weight_gradients" if event.storage in gradients else "logits"
                allocated.append(event.storage)
        elif isinstance(event, TracedOperation):
            if event.index in head:
                for storage in allocated:
                    kinds[storage] = "logits"
            allocated.clear()
    return kinds


@lru_cache(maxsize=4096)
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


def _weight_gradients(tape: Tape, scopes: set[str]) -> set[int]:
    """Storages with gradients of weights that modules make: results of products, and what is made of these alone."""
    weights, made = _weights(tape), set[int]()
    for operation in tape.operations:
        if operation.phase == "backward" and operation.scope in scopes:
            reads = {operand.storage for operand in operation.reads}
            if reads and (reads.isdisjoint(weights) if operation.products else reads <= made):
                made.update(operand.storage for operand in operation.writes)
    return made


def _weights(tape: Tape) -> set[int]:
    """Storages of weights, whole or gathered, and of what is made of them: dequantised ones, casts, fused ones too."""
    made = {one.number for one in tape.storages if one.kind in ("parameter", "gathered", "buffer")}
    for operation in tape.operations:
        read = [operand for operand in operation.reads if operand.storage in made]
        if not read or operation.products:
            continue
        shapes = {operand.shape for operand in read}
        of_weights = len(read) == len(operation.reads)
        made.update(one.storage for one in operation.writes if of_weights or one.shape in shapes)
    return made
