"""Contracts of optimizers: the state's bytes, and what the operations of an update read, write and free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.texts import not_a_line, not_a_word
from buddysim.contracts.trial_model import operations_of
from buddysim.training.autograd import Tape
from buddysim.training.autograd.dtypes import bfloat16, float32
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.optimizers.optimizer import Optimizer, StateTensor, UpdatedWeight

_SHAPES = ((64, 96), (4096,), (3,))
_DTYPES = (float32, bfloat16)
_SIZES = (0, 1, 1000, 10**6)


class _Update(NamedTuple):
    """A recorded update: its variant in words, the tape, the weights, and the bytes that lived before it."""

    what: str
    tape: Tape
    updated: list[UpdatedWeight]
    bytes_before: int


def _updates(subject: Subject) -> Iterator[_Update]:
    """An update of some weights by each variant, in each format, the first one and a later one."""
    for variant, dtype, fresh in product(subject.member.VARIANTS, _DTYPES, (True, False)):
        with Tape(dtype) as tape:
            updated = list(_weights(subject.member, tape, variant, fresh))
            before = _live(tape)
            subject.member.update(updated, variant, None)
            yield _Update(f"{variant}, {dtype.name}, {'first' if fresh else 'later'}", tape, updated, before)


def _weights(rule: Optimizer, tape: Tape, variant: str, fresh: bool) -> Iterator[UpdatedWeight]:
    """Weights of `_SHAPES` with what their update reads."""
    dtype, shared = tape.default_dtype, _made(tape, rule.shared_state(variant))
    for shape in _SHAPES:
        weight = tape.empty(shape, dtype, "parameter", kind="parameter")
        gradient = tape.empty(shape, dtype, "gradient", kind="gradient")
        yield UpdatedWeight(weight, gradient, {**shared, **_made(tape, rule.state(shape, dtype, variant))}, fresh)


def _made(tape: Tape, state: Sequence[StateTensor]) -> dict[str, Tensor]:
    return {one.name: tape.empty(one.shape, one.dtype, one.producer) for one in state}


def _live(tape: Tape) -> int:
    *_, last = tape.live_bytes()
    return last


def _misstated(subject: Subject) -> Iterator[str]:
    rule: Optimizer = subject.member
    yield from not_a_word("name", rule.name)
    yield from not_a_line("summary", rule.summary)
    if not rule.VARIANTS or len(set(rule.VARIANTS)) < len(rule.VARIANTS):
        yield f"VARIANTS {rule.VARIANTS}: expected one or more, each once"
    for variant in rule.VARIANTS:
        names = [one.name for one in (*rule.state(_SHAPES[0], float32, variant), *rule.shared_state(variant))]
        if len(set(names)) < len(names):
            yield f"{variant}: two tensors of state have one name: {', '.join(names)}"


def _odd_bytes(subject: Subject) -> Iterator[str]:
    rule: Optimizer = subject.member
    counts = [rule.state_bytes(size) for size in _SIZES]
    if counts[0] != 0 or counts != sorted(counts) or any(type(one) is not int for one in counts):
        yield f"state of {', '.join(map(str, _SIZES))} weights has {counts} B: expected whole numbers from 0 that grow"
    for size, count in zip(_SIZES, counts, strict=True):
        if rule.moved_bytes(size) < 3 * float32.size * size + count:
            yield f"an update of {size} weights moves {rule.moved_bytes(size)} B: expected weights, gradients and state"


def _skipped(subject: Subject) -> Iterator[str]:
    for update in _updates(subject):
        read, written = set(), set()
        for operation in update.tape.operations:
            read |= {one.storage for one in operation.reads}
            written |= {one.storage for one in operation.writes}
        for one in update.updated:
            shape = one.weight.shape
            if _number(one.weight) not in written:
                yield f"{update.what}: the weight of {shape} isn't written"
            if _number(one.gradient) not in read and not one.fresh:  # whose state can begin as a copy of it
                yield f"{update.what}: the gradient of {shape} isn't read"
            for name, tensor in one.state.items():
                if _number(tensor) not in read | written:
                    yield f"{update.what}: {name} of the weight of {shape} is neither read nor written"


def _number(tensor: Tensor) -> int:
    return tensor.storage.record.number


def _left(subject: Subject) -> Iterator[str]:
    for update in _updates(subject):
        after = _live(update.tape)
        if after != update.bytes_before:
            yield f"{update.what}: {after - update.bytes_before} B more live after an update than before it"


def _different(subject: Subject) -> Iterator[str]:
    for one, other in zip(_updates(subject), _updates(subject), strict=True):
        if operations_of(one.tape) != operations_of(other.tape):
            yield f"{one.what}: two updates recorded alike differ"


CONTRACTS = {
    "optimizer": (
        Contract("it has a name, a summary, variants and named state", _misstated, safe=True),
        Contract("bytes of state grow with the weights, an update moves at least these", _odd_bytes),
        Contract("an update reads each gradient and writes each weight", _skipped),
        Contract("an update frees what it allocates", _left),
        Contract("two updates recorded alike are equal", _different),
    )
}
