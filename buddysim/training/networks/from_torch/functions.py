"""Layers for PyTorch's functions and methods of tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from buddysim.training.networks import kinds
from buddysim.training.networks.from_torch.attention import dropped, read_fused
from buddysim.training.networks.from_torch.modules import flatten, pool, pooled_to
from buddysim.training.networks.from_torch.products import read_masked, read_product, read_scaled
from buddysim.training.networks.from_torch.reader import IN_PARTS, Reader, shape_of

if TYPE_CHECKING:
    from torch import fx


def _argument(node: fx.Node, position: int, name: str, default: Any = None) -> Any:
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def _add(reader: Reader, node: fx.Node) -> int:
    if node.kwargs.get("alpha", 1) != 1:
        reader.refuse(node, "add with alpha")
    learned = [one for one in node.args if one in reader.parameters]
    if learned:
        return _positions(reader, node, learned[0])
    looked_up = [one for one in node.args if one in reader.tables]
    if looked_up:
        (before,) = (reader.layer_of[cast("fx.Node", one)] for one in node.args if one is not looked_up[0])
        return reader.add("positions", node, [before], rows=reader.tables[cast("fx.Node", looked_up[0])])
    return reader.add("add", node, reader.inputs(node, 2))


def _positions(reader: Reader, node: fx.Node, learned: Any) -> int:
    """A learned value for each element of every sample."""
    (before,) = (reader.layer_of[cast("fx.Node", one)] for one in node.args if one is not learned)
    parameter = reader.parameters[learned]
    if parameter is None or not reader.first_use(parameter) or tuple(parameter.shape) != (1, *reader.net.shape(before)):
        reader.refuse(node, "add of something other than learned positions, one for each token and feature")
    return reader.add("positions", node, [before])


def _cat(reader: Reader, node: fx.Node) -> int:
    if _argument(node, 1, "dim", 0) != 1:
        reader.refuse(node, "cat along another extent than channels or tokens (dim=1)")
    first, *others = _argument(node, 0, "tensors")
    if first in reader.parameters:
        parameter, before = reader.parameters[first], reader.layer_of[others[0]]
        if parameter is None or not reader.first_use(parameter) or parameter.dim() != 3 or len(others) > 1:
            reader.refuse(node, "cat of something other than learned tokens before others")
        return reader.add("prepend", node, [before], tokens=parameter.shape[1])
    return reader.add("concat" if others else "copy", node, reader.inputs(node))


def _transpose(reader: Reader, node: fx.Node) -> int:
    """Tokens and features exchanged, a view; a view that moves heads is known to those who read it."""
    (before,) = reader.inputs(node)
    rank = len(shape_of(node))
    if rank == 4 and len(reader.net.shape(before)) == 2:
        return before
    order: Any = node.args[1] if isinstance(node.args[1], list | tuple) else node.args[1:]
    exchanged = sorted(axis % 3 for axis in order) if node.target == "transpose" else list(order)
    if len(reader.net.shape(before)) != 2 or exchanged not in ([1, 2], [0, 2, 1]):
        reader.refuse(node, f"{node.target} of other than tokens and features")
    return reader.add("reshape", node, [before], transposed=True)


def _in_order(reader: Reader, node: fx.Node) -> int:
    return reader.viewed(node)


def _parts(reader: Reader, node: fx.Node) -> int:
    """Parts of the features, a view each; `_item` reads one of them."""
    return reader.inputs(node, 1)[0]


def _mean(reader: Reader, node: fx.Node) -> int:
    extents = _argument(node, 1, "dim")
    rank = len(reader.net.shape(reader.inputs(node, 1)[0])) + 1
    if not isinstance(extents, list | tuple) or sorted(extent % rank for extent in extents) != [2, 3] or rank != 4:
        reader.refuse(node, "mean over other extents than height and width")
    return pooled_to(reader, node, (1, 1))


def _plain(kind: str) -> Callable[[Reader, fx.Node], int]:
    def read(reader: Reader, node: fx.Node) -> int:
        name = str(node.target if node.op == "call_method" else getattr(node.target, "__name__", ""))
        written = name.endswith("_") or bool(node.kwargs.get("inplace", False))
        return reader.add(kind, node, reader.inputs(node, 1), written_in_place=written)

    return read


def _functional_pool(kind: str) -> Callable[[Reader, fx.Node], int]:
    dilation = ("dilation",) if kind == "maxpool" else ()
    names = ("input", "kernel_size", "stride", "padding", *dilation, "ceil_mode")

    def read(reader: Reader, node: fx.Node) -> int:
        arguments = dict(zip(names, node.args, strict=False)) | node.kwargs
        return pool(reader, node, kind, arguments)

    return read


def _functional_dropout(reader: Reader, node: fx.Node) -> int:
    probability, written = _argument(node, 1, "p", 0.5), bool(_argument(node, 3, "inplace", False))
    return dropped(reader, node, reader.inputs(node, 1)[0], "", probability, written)


def _functional_adaptive(reader: Reader, node: fx.Node) -> int:
    return pooled_to(reader, node, shape_of(node)[-2:])


def _item(reader: Reader, node: fx.Node) -> int:
    """The first of several outputs, as of a recurrent layer or an attention; or one token of all."""
    (before,) = reader.inputs(node, 1)
    item = node.args[1]
    whole = cast("fx.Node", node.args[0])
    if whole.target in IN_PARTS or getattr(whole.target, "__name__", "") in IN_PARTS:
        sizes = [shape.shape for shape in whole.meta["tensor_meta"]]
        if len(set(sizes)) > 1 or sizes[0][:-1] != (*sizes[0][:1], *reader.net.shape(before)[:-1]):
            reader.refuse(node, f"{whole.target} other than into equal parts of the features")
        return reader.add("part", node, [before], of=len(sizes), number=item)
    if item == 0:
        return before
    if not (isinstance(item, tuple) and len(item) == 2 and item[0] == slice(None) and isinstance(item[1], int)):
        reader.refuse(node, f"getitem {item}")
    return reader.add("take", node, [before], token=item[1] % reader.net.shape(before)[0])


def function_readers() -> dict[str, Callable[[Reader, fx.Node], int]]:
    """The reader of each function or method, by its name."""
    plain = {name: _plain(kind) for kind, known in kinds.REGISTRY.items() for name in known.torch.functions}
    return plain | _WITH_ARGUMENTS


_WITH_ARGUMENTS: dict[str, Callable[[Reader, fx.Node], int]] = {
    operator.add.__name__: _add,
    operator.iadd.__name__: _add,
    "add_": _add,
    "cat": _cat,
    "concat": _cat,
    "max_pool2d": _functional_pool("maxpool"),
    "avg_pool2d": _functional_pool("avgpool"),
    "adaptive_avg_pool2d": _functional_adaptive,
    "dropout": _functional_dropout,
    "flatten": flatten,
    "view": flatten,
    "reshape": flatten,
    "permute": _transpose,
    "transpose": _transpose,
    "contiguous": _in_order,
    "chunk": _parts,
    "split": _parts,
    "matmul": read_product,
    "bmm": read_product,
    "mul": read_scaled,
    "truediv": read_scaled,
    "div": read_scaled,
    "masked_fill": read_masked,
    "scaled_dot_product_attention": read_fused,
    "mean": _mean,
    "getitem": _item,
}
