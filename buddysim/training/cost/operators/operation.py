"""Work of one recorded operator, and of which kind its kernel is."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from buddysim.training.autograd.records import TracedOperation
from buddysim.training.cost.operators.attention import AttentionWork
from buddysim.training.cost.operators.memory_bound import LONG_ROW, Kind

_KINDS: dict[str, Kind] = {
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
_SOFTMAXES = ("_softmax", "_log_softmax", "_safe_softmax", "_softmax_backward_data", "_log_softmax_backward_data")
_ATTENTION = "_scaled_dot_product_"
_BACKWARD = "_backward"
_READ_BY_INDEX = ("embedding", "index", "gather")
"""Operators that read of their first operand no more than what they write."""


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
    """

    bytes: int
    products: tuple[tuple[int, int, int, int], ...] = ()
    number_format: str = "fp32"
    kind: Kind = "elementwise"
    attention: AttentionWork | None = None
    kernel: str = ""
    backward: bool = False
    grouped: bool = False


def work_of(operation: TracedOperation) -> OperationWork:
    """Return the work of an operation."""
    operands = operation.reads or operation.writes
    name = {2: "bf16"}.get(operands[0].dtype.size, "fp32") if operands else "fp32"
    if operands and operands[0].dtype.name == "float16":
        name = "fp16"
    backward = operation.phase == "backward"
    products = tuple((one.m, one.n, one.k, one.batch) for one in operation.products)
    if operation.name.startswith(_ATTENTION):
        kernel = operation.name.removeprefix(_ATTENTION).partition("_")[0]
        return OperationWork(
            _bytes(operation), (), name, attention=_attention_of(operation), kernel=kernel, backward=backward
        )
    grouped = operation.name == "_grouped_mm"
    return OperationWork(_bytes(operation), products, name, _kind_of(operation), None, "", backward, grouped)


def _bytes(operation: TracedOperation) -> int:
    if operation.name in _READ_BY_INDEX and operation.reads:
        rest = sum(one.bytes for one in operation.reads[1:])
        return 2 * operation.bytes_written + rest
    return operation.bytes_read + operation.bytes_written


def _kind_of(operation: TracedOperation) -> Kind:
    if operation.name in _SOFTMAXES and operation.writes:
        return "long_softmax" if operation.writes[0].shape[-1] > LONG_ROW else "softmax"
    return _KINDS.get(operation.name, "elementwise")


def _attention_of(operation: TracedOperation) -> AttentionWork:
    """Return the shape of an attention kernel: causal where it counts half of the operations."""
    backward = operation.name.endswith(_BACKWARD)
    query, key = (operation.reads[index].shape for index in ((1, 2) if backward else (0, 1)))
    batch, heads, tokens, size = query
    full = 4 * prod(query) * key[2] * (2.5 if backward else 1)
    return AttentionWork(batch, tokens, key[2], heads, key[1], size, causal=2 * operation.flops <= 1.01 * full)
