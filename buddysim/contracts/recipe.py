"""Contracts of recipes: the formats that a recorded step has are those that the recipe states."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.texts import not_a_line, not_a_word
from buddysim.contracts.trial_model import operations_of, trial_step
from buddysim.training.autograd.dtypes import float32
from buddysim.training.cost.precision import PRECISIONS
from buddysim.training.recipes import Recipe

_OPTIMIZER = "sgd"


def _misstated(subject: Subject) -> Iterator[str]:
    recipe: Recipe = subject.member
    yield from not_a_word("name", recipe.name)
    yield from not_a_line("summary", recipe.summary)
    if recipe.precision not in PRECISIONS:
        yield f"precision {recipe.precision!r}: expected one of {', '.join(PRECISIONS)}"
        return
    operands = recipe.autocast or recipe.weights
    if operands.size != PRECISIONS[recipe.precision].element_bytes:
        yield f"products have operands of {operands.size} B, precision {recipe.precision} is of another size"


def _other_formats(subject: Subject) -> Iterator[str]:
    recipe: Recipe = subject.member
    tape, operands = trial_step(recipe, _OPTIMIZER), recipe.autocast or recipe.weights
    weights = {one.number: one.label for one in tape.storages if one.kind == "parameter"}
    for operation in tape.operations:
        for one in (*operation.reads, *operation.writes):
            if one.storage in weights and one.dtype is not recipe.weights:
                weight = f"{weights[one.storage]} in {one.dtype.name}"
                yield f"{operation.name} takes {weight}: expected {recipe.weights.name}"
        if operation.products and operation.phase == "forward":
            for one in operation.reads:
                if one.dtype.size != operands.size and prod(one.shape) > 1 and one.dtype.is_floating_point:
                    yield f"{operation.name} multiplies {one.dtype.name}: expected {operands.name}"


def _other_masters(subject: Subject) -> Iterator[str]:
    recipe: Recipe = subject.member
    tape = trial_step(recipe, _OPTIMIZER)
    sizes = {
        kind: sum(one.bytes for one in tape.storages if one.kind == kind and one.phase == "setup")
        for kind in ("parameter", "master")
    }
    expected = sizes["parameter"] // recipe.weights.size * float32.size if recipe.masters else 0
    if sizes["master"] != expected:
        yield f"masters take {sizes['master']} B, weights {sizes['parameter']} B: expected {expected} B"


def _different(subject: Subject) -> Iterator[str]:
    one, other = (operations_of(trial_step(subject.member, _OPTIMIZER)) for _ in range(2))
    if one != other:
        yield "two steps recorded alike differ"


CONTRACTS = {
    "recipe": (
        Contract("it has a name, a summary, and a precision as wide as its products", _misstated, safe=True),
        Contract("weights and products of a step have its formats", _other_formats),
        Contract("masters are in single precision, and there if the recipe says so", _other_masters),
        Contract("two steps recorded alike are equal", _different),
    )
}
