"""Work of a recorded operation: what its time follows from, and of which kind its kernel is."""

from __future__ import annotations

from typing import Literal, NamedTuple

from buddysim.training.autograd.records import TracedOperation

#: How a kernel that memory bounds reads: each element once, rows with a result for each, rows too long for registers,
#: by an index.
KernelKind = Literal["elementwise", "norm", "norm_backward", "softmax", "long_softmax", "gather"]
#: Who launches an operator: Python, autograd's thread, the optimizer for many tensors, compiled code.
Launcher = Literal["forward", "backward", "optimizer", "compiled"]

LONG_ROW = 8192
"""Elements of a row from which a softmax reads it again for each step: PyTorch's threads hold shorter ones."""

BACKWARD_PRODUCTS = 2.5
"""Products of the backward pass of attention over those of the forward pass: five for two."""

_KINDS: dict[str, KernelKind] = {
    "native_layer_norm": "norm",
    "_fused_rms_norm": "norm",
    "native_group_norm": "norm",
    "mean": "norm",
    "native_layer_norm_backward": "norm_backward",
    "_fused_rms_norm_backward": "norm_backward",
    "native_group_norm_backward": "norm_backward",
    "embedding": "gather",
    "embedding_dense_backward": "gather",
    "index": "gather",
    "_index_put_impl_": "gather",
    "gather": "gather",
    "scatter_add": "gather",
    "index_add": "gather",
}
_FORMATS = {"bfloat16": "bf16", "float16": "fp16"}
_SOFTMAXES = ("_softmax", "_log_softmax", "_safe_softmax", "_softmax_backward_data", "_log_softmax_backward_data")
_ATTENTION = "_scaled_dot_product_"
_BACKWARD = "_backward"
_READ_BY_INDEX = ("embedding", "index", "gather")
"""Operators that read of their largest operand no more than what they write."""
_UNREAD = ("nll_loss_forward", "nll_loss_backward")
"""Operators whose largest operand is hardly read: one probability of each row, and none, since the gradient of a row is
zero but for one element."""


class AttentionWork(NamedTuple):
    """Attention of `tokens` queries over `keys` keys.

    Attributes
    ----------
    window : keys that a query sees, itself included; 0: all
    """

    batch: int
    tokens: int
    keys: int
    heads: int
    kv_heads: int
    head_size: int
    causal: bool = True
    window: int = 0


class OperationWork(NamedTuple):
    """What the time of one operator follows from.

    Attributes
    ----------
    bytes : read and written, at least
    products : m, n, k and count of each size of matrix product
    number_format : of the products' operands: fp32, bf16 or fp16
    kind : of a kernel that memory bounds
    attention : of a fused attention kernel
    kernel : of attention: ``"flash"`` or ``"efficient"``
    backward : whether autograd runs it
    grouped : whether the products are one kernel of groups, as experts have them
    launcher : who launches it
    tensors : of an optimizer's operator, that it works on
    """

    bytes: int
    products: tuple[tuple[int, int, int, int], ...] = ()
    number_format: str = "fp32"
    kind: KernelKind = "elementwise"
    attention: AttentionWork | None = None
    kernel: str = ""
    backward: bool = False
    grouped: bool = False
    launcher: Launcher = "forward"
    tensors: int = 1


def work_of(operation: TracedOperation, compiled: bool = False) -> OperationWork:
    """Return the work of an operation.

    Parameters
    ----------
    compiled : whether it is of a compiled step
    """
    formats = [_FORMATS[one.dtype.name] for one in operation.reads if one.dtype.name in _FORMATS]
    products = tuple((one.m, one.n, one.k, one.batch) for one in operation.products)
    is_attention = operation.name.startswith(_ATTENTION)
    return OperationWork(
        bytes=_bytes(operation),
        products=products,
        number_format=formats[0] if formats else "fp32",
        kind=_kind_of(operation),
        attention=_attention_of(operation) if is_attention else None,
        kernel=operation.name.removeprefix(_ATTENTION).partition("_")[0] if is_attention else "",
        backward=operation.phase == "backward",
        grouped=operation.name == "_grouped_mm",
        launcher=_launcher_of(operation, compiled),
        tensors=max(len(operation.reads), len(operation.writes)) if operation.phase == "optimizer" else 1,
    )


def _launcher_of(operation: TracedOperation, compiled: bool) -> Launcher:
    if operation.phase == "optimizer":
        return "optimizer"
    if compiled:
        return "compiled"
    return "backward" if operation.phase == "backward" else "forward"


def _bytes(operation: TracedOperation) -> int:
    if operation.name in _READ_BY_INDEX and operation.reads:
        table = max(one.bytes for one in operation.reads)
        return 2 * operation.bytes_written + operation.bytes_read - table
    if operation.name in _UNREAD:
        return operation.bytes_written + operation.bytes_read - max(one.bytes for one in operation.reads)
    return operation.bytes_read + operation.bytes_written


def _kind_of(operation: TracedOperation) -> KernelKind:
    if operation.name in _SOFTMAXES and operation.writes:
        return "long_softmax" if operation.writes[0].shape[-1] > LONG_ROW else "softmax"
    return _KINDS.get(operation.name, "elementwise")


def _attention_of(operation: TracedOperation) -> AttentionWork:
    """Return the shape of an attention kernel: causal where it counts half of the operations.

    Queries have the shape of the result, or of its first gradient; compiled code reads tensors in an order of its own.
    """
    batch, heads, tokens, size = operation.writes[0].shape
    backward = operation.name.endswith(_BACKWARD)
    others = operation.writes[1:2] if backward else operation.reads
    shapes = [one.shape for one in others if len(one.shape) == 4 and one.shape[3] == size]
    key = min(shapes, key=lambda shape: shape[1], default=operation.writes[0].shape)
    full = 4 * batch * heads * tokens * size * key[2] * (BACKWARD_PRODUCTS if backward else 1)
    return AttentionWork(batch, tokens, key[2], heads, key[1], size, causal=2 * operation.flops <= 1.01 * full)
