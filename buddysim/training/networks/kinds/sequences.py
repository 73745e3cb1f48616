"""Layers of language models and of vision transformers."""

from __future__ import annotations

from buddysim.training.networks.graph import ELEMENT_BYTES, Gemm
from buddysim.training.networks.layer_kind import (
    Attribute,
    Attributes,
    Facts,
    Inputs,
    Kind,
    Mismatch,
    elements,
    per_output,
    shape_text,
    tokens,
)

_GATES = 4
_POINTWISE_FLOPS = 20  # of one cell and step: four gate functions, two products and a sum, tanh and the output gate


def _embedding(inputs: Inputs, attributes: Attributes) -> Facts:
    if len(inputs[0]) != 1:
        raise Mismatch("an input of tokens", shape_text(inputs[0]))
    return Facts((inputs[0][0], attributes["features"]), parameters=attributes["vocabulary"] * attributes["features"])


def _positions(inputs: Inputs, attributes: Attributes) -> Facts:
    shape = inputs[0]
    if len(shape) not in (2, 3):
        raise Mismatch("an input of tokens x features or channels x height x width", shape_text(shape))
    count, features = (shape[0], shape[1]) if len(shape) == 2 else (shape[1] * shape[2], shape[0])
    out = (count + attributes["extra"], features)
    return Facts(out, parameters=elements(out) + attributes["extra"] * features, flops=elements(out))


def _prepend(inputs: Inputs, attributes: Attributes) -> Facts:
    count, features = tokens(inputs[0])
    return Facts((attributes["tokens"] + count, features), parameters=attributes["tokens"] * features)


def _take(inputs: Inputs, attributes: Attributes) -> Facts:
    count, features = tokens(inputs[0])
    if attributes["token"] >= count:
        raise Mismatch(f"an input of more than {attributes['token']} tokens", count)
    return Facts((features,))


def _lstm(inputs: Inputs, attributes: Attributes) -> Facts:
    steps, features = tokens(inputs[0])
    hidden = attributes["features"]
    out = attributes["projection"] or hidden
    gemms = [Gemm(steps, _GATES * hidden, features), Gemm(1, _GATES * hidden, out, count=steps)]
    parameters = _GATES * hidden * (features + out + attributes["biases"])
    kept = _GATES + 1  # gates and cell of each step
    if attributes["projection"]:
        gemms.append(Gemm(1, out, hidden, count=steps))
        parameters += hidden * out
        kept += 1  # what is projected
    return Facts(
        (steps, out),
        parameters=parameters,
        flops=2 * sum(gemm.multiply_adds for gemm in gemms) + _POINTWISE_FLOPS * steps * hidden,
        gemms=tuple(gemms),
        saved_sample_bytes=kept * steps * hidden * ELEMENT_BYTES,
    )


KINDS = (
    Kind(
        "embedding",
        "a row of a table for each token",
        frozenset({"x", "dy"}),
        _embedding,
        {
            "vocabulary": Attribute("count", "rows of the table"),
            "features": Attribute("count", "elements of a row"),
        },
        moves=per_output(2, 3),  # a gradient is added to rows
    ),
    Kind(
        "positions",
        "tokens, or the pixels of an image as tokens, with learned tokens put before them and learned positions added",
        frozenset({"dy"}),
        _positions,
        {"extra": Attribute("size", "learned tokens put before the others", 0)},
        moves=per_output(2, 2),
    ),
    Kind(
        "prepend",
        "learned tokens put before the others",
        frozenset({"dy"}),
        _prepend,
        {"tokens": Attribute("count", "how many", 1)},
        moves=per_output(2, 2),
    ),
    Kind(
        "take",
        "one of the tokens",
        frozenset({"dy"}),
        _take,
        {"token": Attribute("size", "which one", 0)},
        classifier="before",
        moves=per_output(2, 2),
    ),
    Kind(
        "lstm",
        "long short-term memory over the tokens; saves its gates, cells and, with a projection, what is projected",
        frozenset({"x", "y", "dy"}),
        _lstm,
        {
            "features": Attribute("count", "cells"),
            "projection": Attribute("count", "elements that the output of the cells is projected to", optional=True),
            "biases": Attribute("size", "biases of each gate: one, or PyTorch's two", 1),
        },
        moves=None,
        recurrent=True,
    ),
)
