"""How each module of PyTorch reads as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from buddysim.training.networks import kinds
from buddysim.training.networks.from_torch.reader import BATCH, Reader, shape_of

if TYPE_CHECKING:
    from torch import fx, nn


def _conv(reader: Reader, node: fx.Node, module: nn.Conv2d) -> int:
    pad: Any = module.padding
    if module.padding_mode != "zeros":
        reader.refuse(node, f"Conv2d with padding_mode {module.padding_mode}")
    if pad == "valid":
        pad = 0
    elif pad == "same":
        if any(
            dilation * (kernel - 1) % 2 for dilation, kernel in zip(module.dilation, module.kernel_size, strict=True)
        ):
            reader.refuse(node, "Conv2d with a padding that differs between two sides")
        pad = [d * (k - 1) // 2 for d, k in zip(module.dilation, module.kernel_size, strict=True)]
    _once(reader, node, module)
    return reader.add(
        "conv",
        node,
        reader.inputs(node, 1),
        channels=module.out_channels,
        kernel=module.kernel_size,
        stride=module.stride,
        pad=pad,
        dilation=module.dilation,
        groups=module.groups,
        bias=module.bias is not None,
    )


def _linear(reader: Reader, node: fx.Node, module: nn.Linear) -> int:
    (before,) = reader.inputs(node, 1)
    fresh = reader.first_use(module.weight)
    biased = module.bias is not None
    if biased and not reader.first_use(module.bias):
        reader.refuse(node, "Linear with another's bias")
    return reader.add("fc", node, [before], features=module.out_features, bias=biased, tied=not fresh)


def _batchnorm(reader: Reader, node: fx.Node, module: nn.BatchNorm2d) -> int:
    _once(reader, node, module)
    return reader.add("batchnorm", node, reader.inputs(node, 1), affine=module.affine)


def _layernorm(reader: Reader, node: fx.Node, module: nn.LayerNorm) -> int:
    if len(module.normalized_shape) != 1 or module.weight is None or module.bias is None:
        reader.refuse(node, "LayerNorm over more than the features, or without scale and shift")
    _once(reader, node, module)
    return reader.add("layernorm", node, reader.inputs(node, 1))


def _lrn(reader: Reader, node: fx.Node, module: nn.LocalResponseNorm) -> int:
    return reader.add("lrn", node, reader.inputs(node, 1), size=module.size)


def _maxpool(reader: Reader, node: fx.Node, module: nn.MaxPool2d) -> int:
    return pool(reader, node, "maxpool", vars(module))


def _avgpool(reader: Reader, node: fx.Node, module: nn.AvgPool2d) -> int:
    return pool(reader, node, "avgpool", vars(module))


def pool(reader: Reader, node: fx.Node, kind: str, arguments: dict[str, Any]) -> int:
    if arguments.get("dilation", 1) not in (1, (1, 1)) or arguments.get("return_indices", False):
        reader.refuse(node, f"{kind} with dilation or returned indices")
    return reader.add(
        kind,
        node,
        reader.inputs(node, 1),
        kernel=arguments["kernel_size"],
        stride=arguments.get("stride") or arguments["kernel_size"],
        pad=arguments.get("padding", 0),
        ceil=bool(arguments.get("ceil_mode", False)),
    )


def _adaptive(reader: Reader, node: fx.Node, module: Any) -> int:
    return pooled_to(reader, node, shape_of(node)[-2:])


def pooled_to(reader: Reader, node: fx.Node, out: tuple[int, ...]) -> int:
    (before,) = reader.inputs(node, 1)
    height, width = reader.net.shape(before)[-2:]
    if (height, width) == out:
        return before
    if height % out[0] or width % out[1]:
        reader.refuse(node, f"adaptive pooling of {height}x{width} to {out[0]}x{out[1]}, whose windows overlap")
    return reader.add("avgpool", node, [before], kernel=[height // out[0], width // out[1]])


def _plain(kind: str) -> Callable[[Reader, fx.Node, Any], int]:
    def read(reader: Reader, node: fx.Node, module: Any) -> int:
        written = bool(getattr(module, "inplace", False))
        return reader.add(kind, node, reader.inputs(node, 1), written_in_place=written)

    return read


def _dropout(reader: Reader, node: fx.Node, module: nn.Dropout) -> int:
    return dropped(reader, node, module.p, module.inplace)


def dropped(reader: Reader, node: fx.Node, share: float, written: bool) -> int:
    if not share:
        return reader.inputs(node, 1)[0]
    return reader.add("dropout", node, reader.inputs(node, 1), share=share, written_in_place=written)


def _embedding(reader: Reader, node: fx.Node, module: nn.Embedding) -> int:
    if not reader.first_use(module.weight):
        reader.refuse(node, "Embedding whose table another layer counts")
    return reader.add(
        "embedding",
        node,
        reader.inputs(node, 1),
        vocabulary=module.num_embeddings,
        features=module.embedding_dim,
    )


def _lstm(reader: Reader, node: fx.Node, module: nn.LSTM) -> int:
    if module.bidirectional or not module.batch_first:
        reader.refuse(node, "LSTM that is bidirectional or not batch_first")
    _once(reader, node, module)
    last = reader.inputs(node, 1)[0]
    for layer in range(module.num_layers):
        last = reader.add(
            "lstm",
            node,
            [last],
            suffix=f"/{layer}" if module.num_layers > 1 else "",
            features=module.hidden_size,
            projection=module.proj_size or None,
            biases=2 if module.bias else 0,
        )
        if module.dropout and layer < module.num_layers - 1:
            last = reader.add("dropout", node, [last], suffix=f"/{layer}/drop", share=module.dropout)
    return last


def _attention(reader: Reader, node: fx.Node, module: nn.MultiheadAttention) -> int:
    """Written out: three projections, scores, softmax, dropout, weighted sum, projection."""
    roles = ("query", "key", "value")
    arguments = dict(zip(roles, node.args, strict=False)) | node.kwargs
    query, key, value = (reader.layer_of[cast("fx.Node", arguments[role])] for role in roles)
    if not module.batch_first or module.in_proj_weight is None or module.bias_k is not None or module.add_zero_attn:
        reader.refuse(node, "MultiheadAttention that isn't batch_first, or with sizes or biases of its own for keys")
    _once(reader, node, module)
    wide, heads, biased = module.embed_dim, module.num_heads, module.in_proj_bias is not None
    projected = [
        reader.add("fc", node, [one], suffix=f"/{role}", features=wide, bias=biased)
        for one, role in zip((query, key, value), roles, strict=True)
    ]
    last = reader.add("matmul", node, projected[:2], suffix="/scores", heads=heads, transposed=True)
    last = reader.add("softmax", node, [last], suffix="/shares")
    if module.dropout:
        last = reader.add("dropout", node, [last], suffix="/drop_shares", share=module.dropout)
    last = reader.add("matmul", node, [last, projected[2]], suffix="/attended", heads=heads)
    return reader.add("fc", node, [last], suffix="/projection", features=wide, bias=module.out_proj.bias is not None)


def same(reader: Reader, node: fx.Node, module: Any = None) -> int:
    return reader.inputs(node)[0]


def flatten(reader: Reader, node: fx.Node, module: Any = None) -> int:
    """A view; left out where only fully connected layers read it, which take any shape as a row."""
    (before,) = reader.inputs(node)
    shape = shape_of(node)
    if shape[0] != BATCH:
        reader.refuse(node, f"a view that joins samples ({shape})")
    if len(shape) == 2 and all(_is_linear(reader, user) for user in node.users):
        return before
    if shape[1:] == reader.net.shape(before):
        return before
    return reader.add("reshape", node, [before], shape=shape[1:])


def _is_linear(reader: Reader, node: fx.Node) -> bool:
    """Whether a node is a fully connected layer, or only passes on to one."""
    from torch import nn

    if node.op != "call_module":
        return False
    module = reader.modules[str(node.target)]
    if isinstance(module, nn.Dropout | nn.Identity):
        return all(_is_linear(reader, user) for user in node.users)
    return isinstance(module, nn.Linear)


def _once(reader: Reader, node: fx.Node, module: nn.Module) -> None:
    if not reader.first_use(*module.parameters()):
        reader.refuse(node, f"{type(module).__name__} that is used twice")


def module_readers() -> dict[type, Callable[[Reader, fx.Node, Any], int]]:
    """What reads each class of modules."""
    from torch import nn

    plain = {getattr(nn, name): _plain(kind) for kind, known in kinds.REGISTRY.items() for name in known.torch.modules}
    return plain | {
        nn.Conv2d: _conv,
        nn.Linear: _linear,
        nn.BatchNorm2d: _batchnorm,
        nn.BatchNorm1d: _batchnorm,
        nn.LayerNorm: _layernorm,
        nn.LocalResponseNorm: _lrn,
        nn.MaxPool2d: _maxpool,
        nn.AvgPool2d: _avgpool,
        nn.AdaptiveAvgPool2d: _adaptive,
        nn.Dropout: _dropout,
        nn.Embedding: _embedding,
        nn.LSTM: _lstm,
        nn.MultiheadAttention: _attention,
        nn.Flatten: flatten,
        nn.Identity: same,
    }
