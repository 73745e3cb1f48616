"""Attention and PyTorch's layers of transformers, read as the functions that they call in training.

``torch.nn.MultiheadAttention`` puts tokens outside samples, projects queries, keys and values with one product where
they are one tensor, and moves the results apart with a copy. Without returned weights, it takes the fused kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from buddysim.training.networks import kinds
from buddysim.training.networks.from_torch.reader import Reader, shape_of

if TYPE_CHECKING:
    from torch import fx, nn


def read_attention(reader: Reader, node: fx.Node, module: nn.MultiheadAttention) -> int:
    """A call of ``MultiheadAttention``."""
    names = ("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask", "average_attn_weights")
    arguments = _arguments(node, (*names, "is_causal"))
    nodes = [cast("fx.Node", arguments[name]) for name in names[:3]]
    reader.once(node, module)
    return _attention(
        *(reader, node, module, [reader.layer_of[one] for one in nodes], "", arguments.get("need_weights", True)),
        causal=_causal(reader, node, arguments, "attn_mask", ("key_padding_mask",)),
        outside=reader.laid_out(nodes[0], (1, 0, 2)),
    )


def _attention(
    reader: Reader,
    node: fx.Node,
    module: nn.MultiheadAttention,
    inputs: list[int],
    suffix: str,
    weights: bool,
    causal: bool = False,
    outside: bool = False,
) -> int:
    """Projections, attention, projection; `outside`: tokens lie outside the samples already."""
    if not module.batch_first or module.in_proj_weight is None or module.bias_k is not None or module.add_zero_attn:
        reader.refuse(node, "MultiheadAttention that isn't batch_first, or with sizes or biases of its own for keys")
    if causal and weights:
        reader.refuse(node, "MultiheadAttention with a mask and need_weights=True")
    wide, heads, biased = module.embed_dim, module.num_heads, module.in_proj_bias is not None
    moved: dict[int, int] = {}
    for layer in inputs:
        if layer not in moved and not outside and reader.net.shape(layer)[0] > 1:
            moved[layer] = reader.add("copy", node, [layer], suffix=f"{suffix}/order")
    query, key, value = (moved.get(layer, layer) for layer in inputs)

    def projected(layer: int, count: int, name: str) -> list[int]:
        made = reader.add("fc", node, [layer], suffix=f"{suffix}/{name}", features=count * wide, bias=biased)
        if count == 1:
            return [made]
        apart = reader.add("copy", node, [made], suffix=f"{suffix}/{name}/apart")
        return [
            reader.add("part", node, [apart], suffix=f"{suffix}/{name}/{number}", of=count, number=number)
            for number in range(count)
        ]

    if query == key == value:
        parts = projected(query, 3, "query_key_value")
    elif key == value:
        parts = projected(query, 1, "query") + projected(key, 2, "key_value")
    else:
        parts = [projected(one, 1, name)[0] for one, name in ((query, "query"), (key, "key"), (value, "value"))]
    if weights:
        last = _written_out(reader, node, parts, suffix, heads, module.dropout)
    else:
        last = reader.add(
            *("attention", node, parts, f"{suffix}/attention"),
            heads=heads,
            probability=module.dropout,
            causal=causal,
            tokens_outside=True,
        )
    out_bias = module.out_proj.bias is not None
    return reader.add("fc", node, [last], suffix=f"{suffix}/projection", features=wide, bias=out_bias)


def _written_out(reader: Reader, node: fx.Node, parts: list[int], suffix: str, heads: int, probability: float) -> int:
    scaled = reader.add("scale", node, [parts[0]], suffix=f"{suffix}/scaled")
    last = reader.add("matmul", node, [scaled, parts[1]], suffix=f"{suffix}/scores", heads=heads, transposed=True)
    last = reader.add("softmax", node, [last], suffix=f"{suffix}/shares")
    last = dropped(reader, node, last, f"{suffix}/drop_shares", probability)
    last = reader.add("matmul", node, [last, parts[2]], suffix=f"{suffix}/attended", heads=heads)
    return reader.add("copy", node, [last], suffix=f"{suffix}/together")


def dropped(reader: Reader, node: fx.Node, before: int, suffix: str, probability: float, written: bool = False) -> int:
    """A dropout behind a layer, where it drops anything."""
    if not probability:
        return before
    return reader.add("dropout", node, [before], suffix=suffix, probability=probability, written_in_place=written)


def read_encoder_layer(reader: Reader, node: fx.Node, module: nn.TransformerEncoderLayer) -> int:
    """A call of ``TransformerEncoderLayer``."""
    arguments = _arguments(node, ("src", "src_mask", "src_key_padding_mask", "is_causal"))
    source = cast("fx.Node", arguments["src"])
    causal = _causal(reader, node, arguments, "src_mask", ("src_key_padding_mask",))
    reader.once(node, module)
    return _encoder_layer(reader, node, module, reader.layer_of[source], "", causal, reader.laid_out(source, (1, 0, 2)))


def read_encoder(reader: Reader, node: fx.Node, module: nn.TransformerEncoder) -> int:
    """A call of ``TransformerEncoder``: its layers, then its normalisation."""
    arguments = _arguments(node, ("src", "mask", "src_key_padding_mask", "is_causal"))
    source = cast("fx.Node", arguments["src"])
    causal = _causal(reader, node, arguments, "mask", ("src_key_padding_mask",))
    reader.once(node, module)
    last, outside = reader.layer_of[source], reader.laid_out(source, (1, 0, 2))
    for number, layer in enumerate(module.layers):
        last = _encoder_layer(reader, node, layer, last, f"/{number}", causal, outside)
        outside = False
    return last if module.norm is None else _norm(reader, node, module.norm, last, "/norm")


def read_decoder_layer(reader: Reader, node: fx.Node, module: nn.TransformerDecoderLayer) -> int:
    """A call of ``TransformerDecoderLayer``."""
    target, memory, causal = _decoder_inputs(reader, node)
    reader.once(node, module)
    return _decoder_layer(reader, node, module, target, memory, "", causal)


def read_decoder(reader: Reader, node: fx.Node, module: nn.TransformerDecoder) -> int:
    """A call of ``TransformerDecoder``: its layers, then its normalisation."""
    last, memory, causal = _decoder_inputs(reader, node)
    reader.once(node, module)
    for number, layer in enumerate(module.layers):
        last = _decoder_layer(reader, node, layer, last, memory, f"/{number}", causal)
    return last if module.norm is None else _norm(reader, node, module.norm, last, "/norm")


def _decoder_inputs(reader: Reader, node: fx.Node) -> tuple[int, int, bool]:
    padding = ("tgt_key_padding_mask", "memory_key_padding_mask")
    arguments = _arguments(node, ("tgt", "memory", "tgt_mask", "memory_mask", *padding, "tgt_is_causal"))
    causal = _causal(reader, node, arguments, "tgt_mask", ("memory_mask", *padding), "tgt_is_causal")
    for name in ("tgt", "memory"):
        if not reader.laid_out(arguments[name], (0, 1, 2)):
            reader.refuse(node, f"a decoder whose {name} isn't contiguous")
    return reader.layer_of[arguments["tgt"]], reader.layer_of[arguments["memory"]], causal


def _encoder_layer(
    reader: Reader, node: fx.Node, module: Any, before: int, suffix: str, causal: bool, outside: bool
) -> int:
    def attended(layer: int, outside: bool) -> int:
        three = [layer] * 3
        made = _attention(reader, node, module.self_attn, three, f"{suffix}/self", False, causal, outside)
        return dropped(reader, node, made, f"{suffix}/drop1", module.dropout1.p)

    def added(layer: int, branch: int, number: int) -> int:
        return reader.add("add", node, [layer, branch], suffix=f"{suffix}/add{number}")

    def norm(layer: int, number: int) -> int:
        return _norm(reader, node, getattr(module, f"norm{number}"), layer, f"{suffix}/norm{number}")

    if module.norm_first:
        middle = added(before, attended(norm(before, 1), False), 1)
        return added(middle, _dense(reader, node, module, norm(middle, 2), suffix, module.dropout2.p), 2)
    middle = norm(added(before, attended(before, outside), 1), 1)
    return norm(added(middle, _dense(reader, node, module, middle, suffix, module.dropout2.p), 2), 2)


def _decoder_layer(
    reader: Reader, node: fx.Node, module: Any, target: int, memory: int, suffix: str, causal: bool
) -> int:
    def own(layer: int) -> int:
        made = _attention(reader, node, module.self_attn, [layer] * 3, f"{suffix}/self", False, causal)
        return dropped(reader, node, made, f"{suffix}/drop1", module.dropout1.p)

    def other(layer: int) -> int:
        made = _attention(reader, node, module.multihead_attn, [layer, memory, memory], f"{suffix}/cross", False)
        return dropped(reader, node, made, f"{suffix}/drop2", module.dropout2.p)

    def dense(layer: int) -> int:
        return _dense(reader, node, module, layer, suffix, module.dropout3.p)

    last = target
    for number, branch in enumerate((own, other, dense), 1):
        norm = getattr(module, f"norm{number}")
        norm_name = f"{suffix}/norm{number}"
        start = _norm(reader, node, norm, last, norm_name) if module.norm_first else last
        last = reader.add("add", node, [last, branch(start)], suffix=f"{suffix}/add{number}")
        if not module.norm_first:
            last = _norm(reader, node, norm, last, norm_name)
    return last


def _dense(reader: Reader, node: fx.Node, module: Any, before: int, suffix: str, probability: float) -> int:
    """Two fully connected layers with an activation between, and dropouts behind it and at the end."""
    last = before
    for number, linear in ((1, module.linear1), (2, module.linear2)):
        biased = linear.bias is not None
        last = reader.add(*("fc", node, [last], f"{suffix}/linear{number}"), features=linear.out_features, bias=biased)
        if number == 1:
            kind = _activation(reader, node, module.activation)
            last = reader.add(kind, node, [last], suffix=f"{suffix}/activation", written_in_place=False)
            last = dropped(reader, node, last, f"{suffix}/drop", module.dropout.p)
    return dropped(reader, node, last, f"{suffix}/drop_dense", probability)


def _activation(reader: Reader, node: fx.Node, activation: Any) -> str:
    name = getattr(activation, "__name__", type(activation).__name__)
    matching = (
        kind for kind, known in kinds.REGISTRY.items() if name in (*known.torch.functions, *known.torch.modules)
    )
    kind = next(matching, None)
    return kind if kind is not None else reader.refuse(node, f"activation {name}")


def _norm(reader: Reader, node: fx.Node, module: Any, before: int, suffix: str) -> int:
    if len(module.normalized_shape) != 1 or module.weight is None or module.bias is None:
        reader.refuse(node, "LayerNorm over more than the features, or without scale and shift")
    return reader.add("layernorm", node, [before], suffix=suffix)


def read_fused(reader: Reader, node: fx.Node) -> int:
    """A call of ``scaled_dot_product_attention`` on samples x heads x tokens x features."""
    arguments = _arguments(node, ("query", "key", "value", "attn_mask", "dropout_p", "is_causal"))
    nodes = [cast("fx.Node", arguments[name]) for name in ("query", "key", "value")]
    shapes = [shape_of(one) for one in nodes]
    parts = [reader.layer_of[one] for one in nodes]
    if arguments.get("attn_mask") is not None:
        reader.refuse(node, "scaled_dot_product_attention with a mask other than is_causal=True")
    for shape, part in zip(shapes, parts, strict=True):
        if len(shape) != 4 or reader.net.shape(part) != (shape[2], shape[1] * shape[3]):
            reader.refuse(node, "scaled_dot_product_attention of other than samples x heads x tokens x features")
    return reader.add(
        *("attention", node, parts),
        heads=shapes[0][1],
        probability=float(arguments.get("dropout_p", 0.0)),
        causal=bool(arguments.get("is_causal", False)),
    )


def _arguments(node: fx.Node, names: tuple[str, ...]) -> dict[str, Any]:
    arguments: dict[str, Any] = dict(zip(names, node.args, strict=False))
    return {**arguments, **node.kwargs}


def _causal(
    reader: Reader,
    node: fx.Node,
    arguments: Mapping[str, Any],
    mask: str,
    refused: tuple[str, ...],
    flag: str = "is_causal",
) -> bool:
    """Whether later tokens are masked; any other mask is refused."""
    stated = arguments.get(flag) is True
    if any(arguments.get(name) is not None for name in refused) or (arguments.get(mask) is not None and not stated):
        reader.refuse(node, f"attention with a mask, but for {mask} with {flag}=True")
    return stated
