"""Layers for products of activations, including attention written as single operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from buddysim.training.networks.from_torch.reader import BATCH, Reader, shape_of

if TYPE_CHECKING:
    from torch import fx


def read_product(reader: Reader, node: fx.Node) -> int:
    """A product of two activations, for each head: samples x heads x rows x columns, or without heads."""
    nodes = [cast("fx.Node", one) for one in node.args[:2]]
    shapes = [shape_of(one) for one in nodes]
    if any(len(shape) not in (3, 4) or shape[0] != BATCH for shape in shapes) or len(set(map(len, shapes))) > 1:
        reader.refuse(node, "a product of other than samples x heads x rows x columns")
    heads = shapes[0][1] if len(shapes[0]) == 4 else 1
    read = [_merged(reader, node, one, number) for number, one in enumerate(nodes)]
    transposed = second_is_transposed(
        *(reader.net.shape(read[0]), reader.net.shape(read[1]), heads, shapes[0][-2:], shapes[1][-2:])
    )
    return reader.add("matmul", node, read, heads=heads, transposed=transposed)


def second_is_transposed(
    first: tuple[int, ...], second: tuple[int, ...], heads: int, left: tuple[int, ...], right: tuple[int, ...]
) -> bool:
    """Whether the second factor of a product is seen transposed.

    Parameters
    ----------
    first, second : shapes of the layers, tokens x features
    left, right : shapes of the factors of one head
    """
    rows, inner = left
    plain_shape, exchanged = (right[0], heads * right[1]), (right[1], heads * right[0])
    if second == plain_shape and second == exchanged:
        return first == (rows, heads * inner)
    return second == exchanged


def _merged(reader: Reader, node: fx.Node, factor: fx.Node, number: int) -> int:
    """A factor with its heads among the samples: a copy where they don't lie next to each other."""
    shape = shape_of(factor)
    before = reader.layer_of[factor]
    if len(shape) == 3 or not reader.copied_as(factor, (shape[0] * shape[1], *shape[2:])):
        return before
    return reader.add("copy", node, [before], suffix=f"/order{number}")


def read_scaled(reader: Reader, node: fx.Node) -> int:
    """A feature map times or divided by a number, or the product of two feature maps."""
    factors = reader.inputs(node)
    if len(factors) == 1:
        return reader.add("scale", node, factors)
    if getattr(node.target, "__name__", node.target) != "mul":
        reader.refuse(node, "a division of two feature maps")
    return reader.add("multiply", node, factors)


def read_masked(reader: Reader, node: fx.Node) -> int:
    """``masked_fill`` with a mask that no layer made."""
    before, mask = (cast("fx.Node", one) for one in node.args[:2])
    if mask not in reader.constants or len(shape_of(before)) not in (3, 4):
        reader.refuse(node, "masked_fill with a mask that depends on the input")
    heads = shape_of(before)[1] if len(shape_of(before)) == 4 else 1
    return reader.add("mask", node, [reader.layer_of[before]], heads=heads, buffer=_is_buffer(mask))


def _is_buffer(node: fx.Node) -> bool:
    """Whether a node is a buffer, or looks at a part of one."""
    if node.op == "get_attr":
        return True
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return name in ("getitem", "view", "unsqueeze") and _is_buffer(node.all_input_nodes[0])
