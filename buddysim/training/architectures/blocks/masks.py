"""Masks of attention, made once a step as transformers makes them (`masking_utils`): on the GPU, from positions.

Written-out attention adds a mask of the features' dtype, of every sequence's tokens by its tokens. PyTorch's operator
takes a mask of truth values, and none where it can leave out later tokens itself. FlashAttention takes windows and
packed documents as numbers, so it never has a mask.
"""

from __future__ import annotations

from dataclasses import dataclass

from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import bool8, int64
from buddysim.training.autograd.tensor import Tensor
from buddysim.training.options.config_options import ConfigOptions


@dataclass(frozen=True)
class _Local:
    """Which earlier tokens a token sees.

    Attributes
    ----------
    window : see `causal_mask`
    left_padding : of each sequence, of attention in chunks
    """

    window: int | None
    left_padding: Tensor | None

    def allowed(self, batch_index: Tensor, query_index: Tensor, key_index: Tensor) -> Tensor:
        """Truth values: whether a query sees a key."""
        if self.window is None:
            return key_index <= query_index
        result = F.new_ones(query_index, (), bool8)
        if self.left_padding is None:
            result = F.bitwise_and(result, key_index > query_index - self.window)
        else:
            result = F.bitwise_and(result, self._in_chunk(self.left_padding, batch_index, query_index, key_index))
        return F.bitwise_and(result, key_index <= query_index)

    def _in_chunk(self, left_padding: Tensor, batch_index: Tensor, query_index: Tensor, key_index: Tensor) -> Tensor:
        key_chunk = F.floor_divide(key_index - F.index(left_padding, batch_index), self.window or 1)
        return F.eq(key_chunk, F.floor_divide(query_index - F.index(left_padding, batch_index), self.window or 1))


def causal_mask(
    options: ConfigOptions,
    embeddings: Tensor,
    position_ids: Tensor | None = None,
    window: int | None = None,
    *,
    chunked: bool = False,
    attention_mask: Tensor | None = None,
) -> Tensor | None:
    """Make the mask of a decoder.

    Parameters
    ----------
    options : decide what kind of mask is needed, if any
    embeddings : of shape (batch, tokens, features)
    position_ids : from which transformers recognizes packed documents; None where a class doesn't pass them
    window : tokens that a token attends to, itself included; None: all earlier ones
    chunked : a token attends to its own of the parts of that many tokens, instead of the last ones
    attention_mask : 1 for each token, 0 for padding; no documents are looked for next to it
    """
    batch, length, _ = embeddings.shape
    padding = None if attention_mask is None else attention_mask.to(bool8)
    documents = (
        None if position_ids is None or padding is not None else _documents(options, position_ids.expand(batch, -1))
    )
    left_padding = F.zeros((batch,), int64) if chunked and window is not None else None
    if options.attention == "flash":
        return None
    is_local = window is not None and length >= window
    if options.attention in ("efficient", "sdpa") and documents is None and not is_local:
        if padding is None:
            return None
        _look_at(padding)
        _look_at(padding[:, :length])
    batches, _heads = F.arange(batch), F.arange(1)
    queries, keys = F.arange(length) + 0, F.arange(length) + 0
    local = _Local(window, left_padding)
    allowed = _allowed(position_ids, documents, batches, queries, keys, local, padding)
    mask = allowed.expand(batch, -1, length, length)
    del allowed, queries, keys, batches, _heads
    if options.attention == "eager":
        mask = F.where(mask, F.zeros((), embeddings.dtype), -1e30)
    return mask


def _look_at(padding: Tensor) -> None:
    """Whether every token counts, which the host waits for."""
    is_full = F.eq(padding.sum(), padding.numel())
    del is_full


def _documents(options: ConfigOptions, position_ids: Tensor) -> Tensor | None:
    """The number of each token's document in its sequence; None where each sequence is one document."""
    first_dummy_value = position_ids[:, :1] - 1
    position_diff = F.diff(position_ids, prepend=first_dummy_value)
    packed_sequence_mask = F.cumsum(F.ne(position_diff, 1), -1)
    is_single = F.all_(F.eq(packed_sequence_mask[:, -1], 0))
    del is_single
    return packed_sequence_mask if options.packed > 1 else None


def _allowed(
    position_ids: Tensor | None,
    documents: Tensor | None,
    batches: Tensor,
    queries: Tensor,
    keys: Tensor,
    local: _Local,
    padding: Tensor | None,
) -> Tensor:
    """Truth values of shape (1 or batch, 1, tokens, tokens): whether a query sees a key."""
    batch_index = batches[:, None, None, None]
    query_index, key_index = queries[None, None, :, None], keys[None, None, None, :]
    if documents is None or position_ids is None:
        if padding is None:
            return local.allowed(batch_index, query_index, key_index)
        result = F.new_ones(query_index, (), bool8)
        result = F.bitwise_and(result, local.allowed(batch_index, query_index, key_index))
        return F.bitwise_and(result, F.index(padding, batch_index, key_index))
    position_ids = position_ids.expand(batches.shape[0], -1)
    result = F.new_ones(query_index, (), bool8)
    result = F.bitwise_and(
        result,
        local.allowed(
            batch_index,
            F.index(position_ids, batch_index, query_index),
            F.index(position_ids, batch_index, key_index),
        ),
    )
    same = F.eq(F.index(documents, batch_index, query_index), F.index(documents, batch_index, key_index))
    return F.bitwise_and(result, same)
