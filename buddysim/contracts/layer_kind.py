"""Contracts of layer kinds: a consistent declaration, and layers made of inputs of usual shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from math import prod
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.texts import not_a_line, not_a_word
from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Layer
from buddysim.training.networks.layer_kind import Attribute, LayerKind

_TENSORS = frozenset({"x", "y", "dy", "mask"})
_SHAPES = ((8, 16, 16), (16, 16), (64,), (16,))
#: A value of each type of attribute, where a kind has no default.
_VALUES: Mapping[str, Any] = {
    "count": 8, "size": 1, "pair": 3, "padding": 1, "flag": False, "fraction": 0.5, "shape": (16, 16),
}  # fmt: skip
_TORCH = ("modules", "functions", "operators")


def _inconsistent(subject: Subject) -> Iterator[str]:
    kind: LayerKind = subject.member
    yield from not_a_word("name", kind.name)
    yield from not_a_line("summary", kind.summary)
    if other := kind.backward_reads - _TENSORS:
        yield f"backward_reads has {', '.join(sorted(other))}: expected some of {', '.join(sorted(_TENSORS))}"
    if kind.min_inputs < 1 or (kind.max_inputs is not None and kind.max_inputs < kind.min_inputs):
        yield f"{kind.min_inputs} to {kind.max_inputs} inputs: expected one or more, the largest number last"
    if kind.runs_in_place == "elementwise" and "x" in kind.backward_reads:
        yield "it overwrites x in place, and its backward step reads x"
    if kind.reads_zeros and "y" not in kind.backward_reads:
        yield "its backward step reads zeros of y (reads_zeros), which backward_reads lacks"
    if any(getattr(kind.torch, where) for where in _TORCH) and any(map(_is_required, kind.attributes.values())):
        yield "it has names in PyTorch, which say nothing of attributes, and requires some"


def _is_required(attribute: Attribute) -> bool:
    return attribute.default is None and not attribute.optional


def _named_twice(subject: Subject) -> Iterator[str]:
    from buddysim.training.networks.kinds import REGISTRY

    for name, kind in REGISTRY.items():
        for where in _TORCH if name != subject.name else ():
            for common in sorted(set(getattr(kind.torch, where)) & set(getattr(subject.member.torch, where))):
                yield f"PyTorch's {common} ({where}) is {name}'s already"


def _layers(subject: Subject) -> Iterator[tuple[tuple[int, ...], Layer]]:
    """A layer of the kind on each shape that it takes, with the shape of one sample."""
    kind: LayerKind = subject.member
    values = {name: _VALUES[one.type] for name, one in kind.attributes.items() if _is_required(one)}
    for shape in _SHAPES:
        net = NetworkBuilder("trial", shape, "a trial", "one layer of a kind")
        try:
            last = net.add("relu")
            inputs = [last] + [net.add("relu", inputs=last) for _ in range(kind.min_inputs - 1)]
            at = net.add(kind.name, inputs=inputs, **values)
        except BuddysimError:
            continue  # a shape that it doesn't take
        yield shape, net.build().layers[at]


def _odd_layers(subject: Subject) -> Iterator[str]:
    layers = list(_layers(subject))
    if not layers and subject.name not in _UNUSUAL:
        yield f"it takes none of the inputs {', '.join(map(str, _SHAPES))}"
    for shape, layer in layers:
        if not layer.output_shape or min(layer.output_shape) < 1:
            yield f"of {shape} it makes {layer.output_shape}: expected extents of 1 or more"
        amounts = {name: getattr(layer, name) for name in ("parameters", "flops", "saved_sample_bytes")}
        for name, amount in {**amounts, "saved_fixed_bytes": layer.saved_fixed_bytes}.items():
            if not isinstance(amount, int) or amount < 0:
                yield f"of {shape}: {name} = {amount!r}: expected a whole number of 0 or more"
        if subject.member.runs_in_place == "view" and prod(layer.output_shape) > prod(shape):
            yield f"of {shape} it makes {layer.output_shape}: expected no more elements, as it is a view"
        if subject.member.moves is not None:
            moves = subject.member.moves(prod(shape), prod(layer.output_shape), subject.member.min_inputs)
            if min(moves) < 0:
                yield f"of {shape} it moves {moves} elements: expected 0 or more"


def _different(subject: Subject) -> Iterator[str]:
    for (shape, one), (_, other) in zip(_layers(subject), _layers(subject), strict=True):
        for field in fields(Layer):
            if getattr(one, field.name) != getattr(other, field.name):
                yield f"of {shape}: {field.name} differs between two layers made alike"


#: Kinds whose inputs have attributes that depend on each other, which values for each alone don't meet.
_UNUSUAL = ("operations",)

CONTRACTS = {
    "layer kind": (
        Contract("its declaration agrees with itself", _inconsistent),
        Contract("a name in PyTorch belongs to one kind", _named_twice),
        Contract("a layer of it has a shape, whole amounts of 0 or more", _odd_layers, safe=True),
        Contract("two layers made alike are equal", _different),
    )
}
