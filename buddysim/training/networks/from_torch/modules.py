"""Layers for PyTorch's modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from buddysim.training.networks import kinds
from buddysim.training.networks.from_torch.attention import (
    dropped,
    read_attention,
    read_decoder,
    read_decoder_layer,
    read_encoder,
    read_encoder_layer,
)
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
    reader.once(node, module)
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
    before = reader.in_order(node)
    fresh = reader.first_use(module.weight)
    biased = module.bias is not None
    if biased and not reader.first_use(module.bias):
        reader.refuse(node, "Linear with another's bias")
    return reader.add("fc", node, [before], features=module.out_features, bias=biased, tied=not fresh)


def _batchnorm(reader: Reader, node: fx.Node, module: nn.BatchNorm2d) -> int:
    reader.once(node, module)
    return reader.add("batchnorm", node, reader.inputs(node, 1), affine=module.affine)


def _layernorm(reader: Reader, node: fx.Node, module: nn.LayerNorm) -> int:
    if len(module.normalized_shape) != 1 or module.weight is None or module.bias is None:
        reader.refuse(node, "LayerNorm over more than the features, or without scale and shift")
    reader.once(node, module)
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
    """Adaptive pooling; to one element it is a mean. Windows that overlap unevenly are taken to be of one size."""
    (before,) = reader.inputs(node, 1)
    if out == (1, 1):
        return reader.add("avgpool", node, [before])
    extents = reader.net.shape(before)[-2:]
    if any(extent < out_extent for extent, out_extent in zip(extents, out, strict=True)):
        reader.refuse(node, f"adaptive pooling of {extents[0]}x{extents[1]} to the larger {out[0]}x{out[1]}")
    stride = [extent // out_extent for extent, out_extent in zip(extents, out, strict=True)]
    kernel = [extent - (out_extent - 1) * step for extent, out_extent, step in zip(extents, out, stride, strict=True)]
    return reader.add("avgpool", node, [before], kernel=kernel, stride=stride)


def _plain(kind: str) -> Callable[[Reader, fx.Node, Any], int]:
    def read(reader: Reader, node: fx.Node, module: Any) -> int:
        written = bool(getattr(module, "inplace", False))
        return reader.add(kind, node, reader.inputs(node, 1), written_in_place=written)

    return read


def _dropout(reader: Reader, node: fx.Node, module: nn.Dropout) -> int:
    return dropped(reader, node, reader.inputs(node, 1)[0], "", module.p, module.inplace)


def _embedding(reader: Reader, node: fx.Node, module: nn.Embedding) -> int | None:
    if not reader.first_use(module.weight):
        reader.refuse(node, "Embedding whose table another layer counts")
    (numbers,) = node.args
    if numbers in reader.constants:
        reader.tables[node] = module.num_embeddings
        return None
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
    reader.once(node, module)
    last = reader.inputs(node, 1)[0]
    if not reader.laid_out(node.args[0], (1, 0, 2)):
        last = reader.add("copy", node, [last], suffix="/order")
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
            last = dropped(reader, node, last, f"/{layer}/drop", module.dropout)
    return last


def same(reader: Reader, node: fx.Node, module: Any = None) -> int:
    return reader.inputs(node)[0]


def flatten(reader: Reader, node: fx.Node, module: Any = None) -> int:
    """A view, or a copy where memory is in another order.

    Left out where only fully connected layers read it, which take any shape as a row, and where it only tells heads
    apart, which those who read them know.
    """
    before = reader.viewed(node)
    shape, own = shape_of(node), reader.net.shape(before)
    if shape[0] != BATCH:
        reader.refuse(node, f"a view that joins samples ({shape})")
    if len(shape) == 2 and all(_is_linear(reader, user) for user in node.users):
        return before
    if shape[1:] == own or (len(own) == 2 and len(shape) == 4 and shape[1] == own[0]):
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


def module_readers() -> dict[type, Callable[[Reader, fx.Node, Any], int | None]]:
    """The reader of each class of modules."""
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
        nn.MultiheadAttention: read_attention,
        nn.TransformerEncoderLayer: read_encoder_layer,
        nn.TransformerEncoder: read_encoder,
        nn.TransformerDecoderLayer: read_decoder_layer,
        nn.TransformerDecoder: read_decoder,
        nn.Flatten: flatten,
        nn.Identity: same,
    }
