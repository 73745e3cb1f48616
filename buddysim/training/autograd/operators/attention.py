"""Scaled dot-product attention as PyTorch runs it on a CUDA GPU: flash, memory-efficient, or plain products.

The kernel is the first of these that takes the tensors (``attention.cpp``, ``sdp_utils.cpp``). Saved tensors are those
of the kernels' CUDA signatures.
"""

from __future__ import annotations

from math import prod
from typing import Literal

from buddysim.base.errors import BuddysimError
from buddysim.training.autograd.autocast import autocast_disabled
from buddysim.training.autograd.dtypes import bfloat16, bool8, float16, float32, uint64
from buddysim.training.autograd.layout import preserved_strides
from buddysim.training.autograd.node import Gradients, GraphNode
from buddysim.training.autograd.operators import arithmetic, copies, dropouts, fills, indexing, products, views
from buddysim.training.autograd.operators.pointwise import pointwise, records
from buddysim.training.autograd.operators.softmaxes import SoftmaxBackward0
from buddysim.training.autograd.tensor import Tensor

Kernel = Literal["flash", "efficient", "math"]

_HALF = (bfloat16, float16)
_LARGEST_FLASH_HEAD = 256


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    kernel: Kernel = "flash",
) -> Tensor:
    """Attention of queries (batch x heads x tokens x size) over keys and values.

    Parameters
    ----------
    attn_mask : truth values, or numbers that are added to the scores
    enable_gqa : keys and values of fewer heads, each of which several heads of queries share
    kernel : the first that is tried; ``"efficient"`` leaves flash out, ``"math"`` both

    Raises
    ------
    BuddysimError
        shapes that don't belong together
    """
    _check(query, key, value, enable_gqa)
    tape = query.storage.tape
    query, key, value = tape.lower(query), tape.lower(key), tape.lower(value)
    cast_mask = mask = tape.lower(attn_mask) if attn_mask is not None else None  # the cast one lives until the return
    if cast_mask is not None and cast_mask.dtype is bool8:
        mask = _additive(cast_mask, query)
    if kernel == "flash" and mask is None and _flash_takes(query, key, value):
        size = query.shape[-1]
        out = _flash(_padded(query), _padded(key), _padded(value), is_causal)
        return out if out.shape[-1] == size else views.slice_(out, -1, 0, size)
    if kernel != "math" and _efficient_takes(query, key, value):
        if mask is not None:
            mask = views.expand(_aligned(mask), (*query.shape[:3], key.shape[2]))
        return _efficient(query, key, value, mask, is_causal)
    with autocast_disabled():
        return _math(query, key, value, mask, dropout_p, is_causal, enable_gqa)


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    shapes = query.shape, key.shape, value.shape
    if (
        any(len(one) != 4 for one in shapes)
        or not key.shape[:3] == value.shape[:3]
        or query.shape[0] != key.shape[0]
        or query.shape[3] != key.shape[3]
        or query.shape[1] % key.shape[1]
        or (query.shape[1] != key.shape[1] and not enable_gqa)
    ):
        raise BuddysimError(f"attention of queries {shapes[0]} over keys {shapes[1]} and values {shapes[2]}")


def _additive(mask: Tensor, query: Tensor) -> Tensor:
    """Truth values as numbers to add."""
    lowest = fills.filled((), query.dtype, "scalar_tensor", query.storage.tape)
    return indexing.where(mask, 0.0, lowest)


def _flash_takes(query: Tensor, key: Tensor, value: Tensor) -> bool:
    sizes = {one.shape[-1] for one in (query, key, value)}
    return (
        query.dtype in _HALF
        and len(query.shape) == 4
        and len(sizes) == 1
        and max(sizes) <= _LARGEST_FLASH_HEAD
        and all(one.strides[-1] == 1 for one in (query, key, value))
    )


def _efficient_takes(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """As many heads of keys as of queries, each of whole 16 bytes."""
    aligned = 16 // query.dtype.size
    return (
        query.shape[1] == key.shape[1]
        and len(query.shape) == 4
        and query.dtype in (*_HALF, float32)
        and query.shape[-1] % aligned == value.shape[-1] % aligned == 0
        and all(one.strides[-1] == 1 for one in (query, key, value))
    )


def _padded(x: Tensor) -> Tensor:
    """Heads whose size is a multiple of 8."""
    missing = -x.shape[-1] % 8
    return copies.pad(x, (0, missing)) if missing else x


def _aligned(mask: Tensor) -> Tensor:
    """A mask whose rows begin at multiples of 8 elements: a view of a padded copy where they don't."""
    if all(stride % 8 == 0 for stride in mask.strides[:-1]) and mask.strides[-1] == 1:
        return mask
    words = mask.shape[-1]
    return views.slice_(copies.pad(mask, (0, 8 - words % 8)), -1, 0, words)


def _flops(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> int:
    """Floating-point operations of both products; half of them where a triangle is skipped."""
    operations = 2 * prod(query.shape[:3]) * key.shape[2] * (query.shape[3] + value.shape[3])
    return operations // 2 if is_causal else operations


class _FusedAttention(GraphNode):
    """One kernel forward, one backward, which does five products for the forward pass's two."""

    __slots__ = ("flops",)

    def __init__(self, operands: tuple[Tensor | None, ...], flops: int) -> None:
        query = operands[0]
        assert query is not None
        super().__init__(query.storage.tape, operands)
        self.flops = flops
        for name, operand in zip(("query", "key", "value", "attn_bias"), operands, strict=False):
            self.save(name, operand)


class ScaledDotProductFlashAttentionBackward0(_FusedAttention):
    __slots__ = ()
    name = "ScaledDotProductFlashAttentionBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        kernel = "_scaled_dot_product_flash_attention_backward"
        results = [
            self.tape.empty(one.shape, one.dtype, kernel, preserved_strides(one.shape, one.strides))
            for one in self.saved[:3]
        ]
        self.tape.launch(kernel, (gradient, *self.saved), results, flops=self.flops * 5 // 2)
        return results


def _flash(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> Tensor:
    tape, kernel = query.storage.tape, "_scaled_dot_product_flash_attention"
    result = tape.empty(query.shape, query.dtype, kernel, preserved_strides(query.shape, query.strides))
    logsumexp = tape.empty(query.shape[:3], float32, kernel)
    state, unused = tape.empty((2,), uint64, kernel), tape.empty((), uint64, kernel)
    flops = _flops(query, key, value, is_causal)
    tape.launch(kernel, (query, key, value), (result, logsumexp, state, unused), flops=flops)
    if records(query, key, value):
        node = ScaledDotProductFlashAttentionBackward0((query, key, value), flops)
        node.returns(result)
        node.save_output("output", result)
        node.save_output("logsumexp", logsumexp)
        node.save_output("rng_state", state)
        node.save_output("unused", unused)
    return result


class ScaledDotProductEfficientAttentionBackward0(_FusedAttention):
    """Its gradients have tokens outside heads; a mask's has rows of 16 elements."""

    __slots__ = ()
    name = "ScaledDotProductEfficientAttentionBackward0"

    def backward(self, gradient: Tensor) -> Gradients:
        kernel = "_scaled_dot_product_efficient_attention_backward"
        results: list[Tensor | None] = []
        for one in self.saved[:3]:
            batch, heads, tokens, size = one.shape
            laid = self.tape.empty((batch, tokens, heads, size), one.dtype, kernel)
            results.append(views.transpose(laid, 1, 2))
        mask = self.saved[3]
        if self.needs(3):
            words = mask.shape[-1]
            wide = self.tape.empty((*mask.shape[:-1], -(-words // 16) * 16), mask.dtype, kernel)
            results.append(views.slice_(wide, -1, 0, words))
        else:
            results.append(None)
        reads = [gradient, *[one for one in self.saved if one is not None]]
        writes = [one for one in results if one is not None]
        for one in writes:
            one.is_view = False  # laid out below autograd, which knows no base of them
        self.tape.launch(kernel, reads, writes, flops=self.flops * 5 // 2)
        return results


def _efficient(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    """Efficient attention; its seed and offset are on the host."""
    tape, kernel = query.storage.tape, "_scaled_dot_product_efficient_attention"
    batch, heads, tokens, _ = query.shape
    reads = [one for one in (query, key, value, mask) if one is not None]
    needed = records(*reads)
    rows = -(-tokens // 32) * 32 if needed else 0
    laid = tape.empty((batch, tokens, heads, value.shape[-1]), query.dtype, kernel)
    result = Tensor(
        (batch, heads, tokens, value.shape[-1]),
        (laid.strides[0], laid.strides[2], laid.strides[1], 1),
        0,
        laid.dtype,
        laid.storage,
        kernel,
    )
    del laid
    logsumexp = tape.empty((batch, heads, rows), float32, kernel)
    flops = _flops(query, key, value, is_causal)
    tape.launch(kernel, reads, (result, logsumexp), flops=flops)
    if needed:
        node = ScaledDotProductEfficientAttentionBackward0((query, key, value, mask), flops)
        node.returns(result)
        node.save_output("output", result)
        node.save_output("log_sumexp", logsumexp)
    return result


class SafeSoftmaxBackward0(SoftmaxBackward0):
    __slots__ = ()
    name = "SafeSoftmaxBackward0"


def _safe_softmax(x: Tensor) -> Tensor:
    """Softmax whose fully masked rows are zeros."""
    tape, name = x.storage.tape, "_safe_softmax"
    result = tape.empty(x.shape, x.dtype, name)
    tape.launch(name, (x,), (result,))
    if x.records:
        SafeSoftmaxBackward0(x, result)
    return result


def _math(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, is_causal: bool, enable_gqa: bool
) -> Tensor:
    """Products and a softmax, of half precision in fp32 (``attention.cpp``, `_scaled_dot_product_attention_math`).

    The weights are returned too, in the operands' type, and dropped by the caller.
    """
    dtype = query.dtype
    wide = [copies.to(one, float32) if dtype in _HALF else one for one in (query, key, value)]
    scaled = arithmetic.mul(wide[0], 1.0)
    if is_causal:
        mask = _additive(_lower_triangle(query.shape[-2], key.shape[-2], query), scaled)
    keys, values = wide[1:]
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        keys = copies.repeat_interleave(keys, query.shape[-3] // key.shape[-3], -3)
        values = copies.repeat_interleave(values, query.shape[-3] // value.shape[-3], -3)
    scores = products.matmul(scaled, arithmetic.mul(views.transpose(keys, -2, -1), 1.0))
    if mask is not None:
        scores = (arithmetic.add if query.tape.in_dispatch_mode else arithmetic.add_)(scores, mask)
    weights = dropouts.dropout(_safe_softmax(scores), dropout_p)
    del scores
    returned = copies.to(weights, dtype), copies.to(products.matmul(weights, values), dtype)
    return returned[1]


def _lower_triangle(rows: int, columns: int, query: Tensor) -> Tensor:
    return pointwise("tril", fills.filled((rows, columns), bool8, "ones", query.tape))
