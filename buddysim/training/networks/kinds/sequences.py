"""Layers of language models and of vision transformers."""

from __future__ import annotations

from buddysim.training.networks.graph import ELEMENT_BYTES, NUMBER_BYTES, Gemm, Layer
from buddysim.training.networks.layer_kind import (
    Attribute,
    Attributes,
    AutogradSaved,
    Device,
    Inputs,
    LayerKind,
    LayerProperties,
    ShapeMismatch,
    elements,
    per_output,
    shape_text,
    tokens,
)

_GATES = 4
_STATISTICS_ROWS = 32  # the memory-efficient kernel pads its statistics to multiples of so many tokens
_POINTWISE_FLOPS = 20  # of one cell and step: four gate functions, two products and a sum, tanh and the output gate


def _embedding(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    if len(inputs[0]) != 1:
        raise ShapeMismatch("an input of tokens", shape_text(inputs[0]))
    return LayerProperties(
        (inputs[0][0], attributes["features"]), parameters=attributes["vocabulary"] * attributes["features"]
    )


def _positions(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    shape = inputs[0]
    if len(shape) not in (2, 3):
        raise ShapeMismatch("an input of tokens x features or channels x height x width", shape_text(shape))
    count, features = (shape[0], shape[1]) if len(shape) == 2 else (shape[1] * shape[2], shape[0])
    out = (count + attributes["extra"], features)
    rows = attributes["rows"] or out[0]
    return LayerProperties(
        out,
        parameters=(rows + attributes["extra"]) * features,
        flops=elements(out),
        saved_fixed_bytes=NUMBER_BYTES * out[0] if attributes["rows"] else 0,
    )


def _prepend(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    count, features = tokens(inputs[0])
    return LayerProperties((attributes["tokens"] + count, features), parameters=attributes["tokens"] * features)


def _take(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    count, features = tokens(inputs[0])
    if attributes["token"] >= count:
        raise ShapeMismatch(f"an input of more than {attributes['token']} tokens", count)
    return LayerProperties((features,))


def _lstm(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    steps, features = tokens(inputs[0])
    hidden = attributes["features"]
    out = attributes["projection"] or hidden
    gemms = [Gemm(steps, _GATES * hidden, features), Gemm(1, _GATES * hidden, out, count=steps)]
    parameters = _GATES * hidden * (features + out + attributes["biases"])
    saved_elements = _GATES + 1  # gates and cell of each step
    if attributes["projection"]:
        gemms.append(Gemm(1, out, hidden, count=steps))
        parameters += hidden * out
        saved_elements += 1  # projected outputs
    return LayerProperties(
        (steps, out),
        parameters=parameters,
        flops=2 * sum(gemm.multiply_adds for gemm in gemms) + _POINTWISE_FLOPS * steps * hidden,
        gemms=tuple(gemms),
        saved_sample_bytes=saved_elements * steps * hidden * ELEMENT_BYTES,
    )


def _lstm_saves(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    """Return the saved tensors: on a GPU X, Y, the first states and cuDNN's reserve; on a CPU those of each step.

    The content of cuDNN's reserve is assumed: gates, cells and projected outputs. PyTorch's own steps save gates, the
    cell, its tanh, with a projection the projected output, and the output that the next step reads.
    """
    (steps, features), out = inputs[0], layer.output_shape[-1]
    hidden = layer.gemms[0].n // _GATES
    projected = hidden if len(layer.gemms) > 2 else 0
    weights = layer.parameters - _GATES * hidden * features
    if device == "cuda":
        return AutogradSaved((0,), True, hidden + out, sample_bytes=layer.saved_sample_bytes, weights=layer.parameters)
    saved_elements = steps * ((_GATES + 2) * hidden + projected + out)
    biases = layer.parameters - sum(gemm.n * gemm.k for gemm in layer.gemms)
    return AutogradSaved(
        (0,), False, saved_elements, weights=weights - biases, weights_for_dx=_GATES * hidden * features
    )


def _attention(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    (queries, wide), (keys, key_wide), (values, value_wide) = (tokens(shape) for shape in inputs)
    heads = attributes["heads"]
    if key_wide != wide or values != keys:
        raise ShapeMismatch(f"keys of {wide} features and as many values as keys", f"{key_wide} and {keys}, {values}")
    if wide % heads or value_wide % heads:
        raise ShapeMismatch(f"features that are a multiple of its {heads} heads", f"{wide} and {value_wide}")
    seen = -(-keys // 2) if attributes["causal"] else keys
    gemms = (
        Gemm(queries, seen, wide // heads, count=heads, weights=False),
        Gemm(queries, value_wide // heads, seen, count=heads, weights=False),
    )
    rows = -(-queries // _STATISTICS_ROWS) * _STATISTICS_ROWS
    return LayerProperties(
        (queries, value_wide),
        flops=2 * sum(gemm.multiply_adds for gemm in gemms),
        gemms=gemms,
        saved_sample_bytes=heads * rows * ELEMENT_BYTES,
    )


def _attention_saves(layer: Layer, inputs: Inputs, device: Device) -> AutogradSaved:
    """Queries, keys, values, the output and a statistic for each row; without a fused kernel what its products read.

    A CPU has a fused kernel without dropout. The output of a GPU's kernel is one feature map for the samples, and a
    copy of it where the tokens lie outside the samples, as in ``torch.nn.MultiheadAttention``.
    """
    attributes = dict(layer.attributes)
    outside = attributes["tokens_outside"]
    if device == "cuda":
        copied = layer.output_elements if outside else 0
        return AutogradSaved((0, 1, 2), not outside, copied, layer.saved_sample_bytes, fixed_bytes=2 * NUMBER_BYTES)
    heads = layer.gemms[0].count
    rows, keys = inputs[0][0], inputs[1][0]
    if not attributes["probability"]:
        return AutogradSaved((0, 1, 2), True, sample_bytes=heads * rows * ELEMENT_BYTES)
    products = elements(inputs[0]) + elements(inputs[1]) + 3 * heads * rows * keys
    if outside or heads == 1:
        return AutogradSaved((2,), False, products)
    return AutogradSaved((), False, products + elements(inputs[2]))


KINDS = (
    LayerKind(
        "embedding",
        "a row of a table for each token",
        frozenset({"x", "dy"}),
        _embedding,
        {
            "vocabulary": Attribute("count", "rows of the table"),
            "features": Attribute("count", "elements of a row"),
        },
        reads_numbers=True,
        moves=per_output(2, 3),  # a gradient is added to rows
    ),
    LayerKind(
        "positions",
        "tokens, or the pixels of an image as tokens, with learned tokens put before them and learned positions added",
        frozenset({"dy"}),
        _positions,
        {
            "extra": Attribute("size", "learned tokens put before the others", 0),
            "rows": Attribute("count", "of a table that each token looks a number up in", optional=True),
        },
        moves=per_output(2, 2),
    ),
    LayerKind(
        "prepend",
        "learned tokens put before the others",
        frozenset({"dy"}),
        _prepend,
        {"tokens": Attribute("count", "how many", 1)},
        moves=per_output(2, 2),
    ),
    LayerKind(
        "take",
        "one of the tokens, a view",
        frozenset({"dy"}),
        _take,
        {"token": Attribute("size", "which one", 0)},
        runs_in_place="view",
        classifier="before",
        moves=per_output(0, 2),
    ),
    LayerKind(
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
        saves=_lstm_saves,
    ),
    LayerKind(
        "attention",
        "softmax of queries times keys, times values, head by head, in one kernel; saves a statistic of each row",
        frozenset({"x", "y", "dy"}),
        _attention,
        {
            "heads": Attribute("count", "independent products", 1),
            "probability": Attribute("fraction", "dropout probability of the softmax's output", 0.0),
            "causal": Attribute("flag", "a token sees itself and those before it only", False),
            "tokens_outside": Attribute("flag", "tokens lie outside the samples in memory", False),
        },
        min_inputs=3,
        max_inputs=3,
        moves=None,
        fused=True,
        saves=_attention_saves,
    ),
)
