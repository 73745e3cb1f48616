"""Joins, views and the other layers that only move values."""

from __future__ import annotations

from buddysim.training.networks.layer_kind import (
    Attribute,
    Attributes,
    Facts,
    Inputs,
    Kind,
    Mismatch,
    elements,
    image,
    per_output,
    shape_text,
    tokens,
)


def _add(inputs: Inputs, attributes: Attributes) -> Facts:
    for other in inputs[1:]:
        if other != inputs[0]:
            raise Mismatch(f"inputs of one shape ({shape_text(inputs[0])})", shape_text(other))
    return Facts(inputs[0], flops=(len(inputs) - 1) * elements(inputs[0]))


def _concat(inputs: Inputs, attributes: Attributes) -> Facts:
    first = inputs[0]
    for other in inputs[1:]:
        if other[1:] != first[1:]:
            expected = f"n x {shape_text(first[1:])}" if first[1:] else "n"
            raise Mismatch(f"inputs that differ in their first extent only ({expected})", shape_text(other))
    return Facts((sum(shape[0] for shape in inputs), *first[1:]))


def _reshape(inputs: Inputs, attributes: Attributes) -> Facts:
    if attributes["transposed"]:
        if attributes["shape"]:
            raise Mismatch("either a shape or transposed, not both", shape_text(attributes["shape"]))
        return Facts(tokens(inputs[0])[::-1])
    shape = tuple(attributes["shape"] or (elements(inputs[0]),))
    if elements(shape) != elements(inputs[0]):
        raise Mismatch(f"an input of {elements(shape)} elements ({shape_text(shape)})", shape_text(inputs[0]))
    return Facts(shape)


def _shortcut(inputs: Inputs, attributes: Attributes) -> Facts:
    channels, height, width = image(inputs[0])
    if attributes["channels"] < channels:
        raise Mismatch(f"an input of {attributes['channels']} channels or fewer", channels)
    stride_h, stride_w = attributes["stride"]
    return Facts((attributes["channels"], -(-height // stride_h), -(-width // stride_w)))


KINDS = (
    Kind(
        "add",
        "sum of its inputs",
        frozenset({"dy"}),
        _add,
        least_inputs=2,
        most_inputs=None,
        moves=lambda x, y, inputs: ((inputs + 1) * y, 2 * y),
    ),
    Kind(
        "concat",
        "its inputs one after the other, along the first extent (channels)",
        frozenset({"dy"}),
        _concat,
        least_inputs=2,
        most_inputs=None,
        zeros="joins",
        moves=per_output(2, 2),
    ),
    Kind(
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
    Kind(
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
