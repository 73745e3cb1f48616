"""Joins, views and the other layers that only move values."""

from __future__ import annotations

from buddysim.training.networks.layer_kind import (
    Attribute,
    Attributes,
    Inputs,
    LayerKind,
    LayerProperties,
    ShapeMismatch,
    elements,
    image,
    one_value_each,
    per_output,
    shape_text,
    tokens,
)


def _add(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    for other in inputs[1:]:
        if other != inputs[0]:
            raise ShapeMismatch(f"inputs of one shape ({shape_text(inputs[0])})", shape_text(other))
    return LayerProperties(inputs[0], flops=(len(inputs) - 1) * elements(inputs[0]))


def _concat(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    first = inputs[0]
    for other in inputs[1:]:
        if other[1:] != first[1:]:
            expected = f"n x {shape_text(first[1:])}" if first[1:] else "n"
            raise ShapeMismatch(f"inputs that differ in their first extent only ({expected})", shape_text(other))
    return LayerProperties((sum(shape[0] for shape in inputs), *first[1:]))


def _reshape(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    if attributes["transposed"]:
        if attributes["shape"]:
            raise ShapeMismatch("either a shape or transposed, not both", shape_text(attributes["shape"]))
        return LayerProperties(tokens(inputs[0])[::-1])
    shape = tuple(attributes["shape"] or (elements(inputs[0]),))
    if elements(shape) != elements(inputs[0]):
        raise ShapeMismatch(f"an input of {elements(shape)} elements ({shape_text(shape)})", shape_text(inputs[0]))
    return LayerProperties(shape)


def _part(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    (*outer, features), parts = inputs[0], attributes["of"]
    if features % parts or attributes["number"] >= parts:
        raise ShapeMismatch(f"features that are a multiple of its {parts} parts, numbered from 0", features)
    return LayerProperties((*outer, features // parts))


def _mask(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    """The mask is a square of truth values for all samples and heads."""
    rows, columns = tokens(inputs[0])
    heads = attributes["heads"]
    if rows % heads:
        raise ShapeMismatch(f"rows that are a multiple of its {heads} heads", rows)
    saved = 0 if attributes["buffer"] else rows // heads * columns
    return LayerProperties(inputs[0], flops=rows * columns, saved_fixed_bytes=saved)


def _shortcut(inputs: Inputs, attributes: Attributes) -> LayerProperties:
    channels, height, width = image(inputs[0])
    if attributes["channels"] < channels:
        raise ShapeMismatch(f"an input of {attributes['channels']} channels or fewer", channels)
    stride_h, stride_w = attributes["stride"]
    return LayerProperties((attributes["channels"], -(-height // stride_h), -(-width // stride_w)))


KINDS = (
    LayerKind(
        "add",
        "sum of its inputs",
        frozenset({"dy"}),
        _add,
        min_inputs=2,
        max_inputs=None,
        moves=lambda x, y, inputs: ((inputs + 1) * y, 2 * y),
    ),
    LayerKind(
        "multiply",
        "product of its inputs, element by element",
        frozenset({"x", "dy"}),
        _add,
        min_inputs=2,
        max_inputs=2,
        moves=per_output(3, 5),
    ),
    LayerKind(
        "scale",
        "its input times a number",
        frozenset({"dy"}),
        one_value_each(1),
        moves=per_output(2, 2),
    ),
    LayerKind(
        "mask",
        "sets what lies behind a mask to one value, as scores of later tokens; saves the mask, a byte per element",
        frozenset({"mask", "dy"}),
        _mask,
        {
            "heads": Attribute("count", "that share the mask", 1),
            "buffer": Attribute("flag", "the mask is a buffer of the module, which stays", False),
        },
        moves=per_output(2, 2),
    ),
    LayerKind(
        "copy",
        "the same values in another order in memory, as a transposed feature map has to be for a product",
        frozenset({"dy"}),
        one_value_each(0),
        zeros="keeps",
        moves=per_output(2, 2),
    ),
    LayerKind(
        "part",
        "one of several equal parts of the features, a view",
        frozenset({"dy"}),
        _part,
        {
            "of": Attribute("count", "parts"),
            "number": Attribute("size", "which one, from 0"),
        },
        runs_in_place="view",
        moves=per_output(0, 2),  # its gradient is written into that of the whole
    ),
    LayerKind(
        "concat",
        "its inputs one after the other, along the first extent (channels)",
        frozenset({"dy"}),
        _concat,
        min_inputs=2,
        max_inputs=None,
        zeros="joins",
        moves=per_output(2, 2),
    ),
    LayerKind(
        "reshape",
        "the same values under another shape",
        frozenset({"dy"}),
        _reshape,
        {
            "shape": Attribute("shape", "extents; a single one by default", optional=True),
            "transposed": Attribute("flag", "the two extents are exchanged", False),
        },
        runs_in_place="view",
        classifier="before",
        zeros="keeps",
        moves=per_output(0, 0),
    ),
    LayerKind(
        "shortcut",
        "every stride-th element, with channels of zeros added (option A of He et al. 2015)",
        frozenset({"dy"}),
        _shortcut,
        {
            "channels": Attribute("count", "output channels"),
            "stride": Attribute("pair", "distance of the elements that are taken", 1),
        },
        zeros="pads",
        moves=per_output(2, 2),
    ),
)
