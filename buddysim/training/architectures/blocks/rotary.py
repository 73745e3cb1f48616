"""Rotary embeddings: cosines and sines of the positions, made once a step, and the rotation of queries and keys."""

from __future__ import annotations

from typing import Any

from buddysim.training.architectures.rotary_config import RotaryConfig
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.module import Module
from buddysim.training.autograd.tape import active_tape
from buddysim.training.autograd.tensor import Tensor


class Rotary(Module):
    """What gives the cosines and sines of all positions; of each layer the same, unless a class says otherwise."""

    def of_layer(self, made: Any, window: int | None) -> tuple[Tensor, Tensor]:
        """Return those of a layer, by its window, from what `forward` made."""
        pair: tuple[Tensor, Tensor] = made
        return pair


class RotaryEmbedding(Rotary):
    """Cosines and sines of the angles, in the dtype of the features.

    Scaling changes the angles' values alone, not what is allocated, except for two kinds that look at the positions
    in each step: ``dynamic`` (the largest position) and ``longrope`` (which of two sets of frequencies it takes).

    Parameters
    ----------
    scaled : as the configuration says; False: not scaled
    """

    def __init__(self, config: RotaryConfig, *, scaled: bool = True) -> None:
        super().__init__()
        self.kind = config.rope_parameters.rope_type if scaled else "default"
        self.long_inv_freq: Tensor | None = None
        frequencies = (config.rotated_features // 2,)
        tape = active_tape()
        self.inv_freq = tape.buffer(frequencies, tape.default_dtype, "inv_freq")
        self.original_inv_freq = tape.buffer(frequencies, tape.default_dtype, "original_inv_freq")

    def forward(self, features: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines for all positions."""
        if self.kind in ("dynamic", "longrope"):
            self._update(position_ids)
        freqs = position_ids.unsqueeze(-1).float() * self.inv_freq.to(float32)
        emb = self.spread(freqs)
        cos = emb.cos() * 1.0
        sin = emb.sin() * 1.0
        return self.cast(cos, features), self.cast(sin, features)

    def spread(self, freqs: Tensor) -> Tensor:
        """Return the angles of all rotated features, from those of half of them."""
        return F.cat((freqs, freqs), -1)

    def cast(self, values: Tensor, features: Tensor) -> Tensor:
        """Return cosines or sines as the features need them."""
        return values.to(features.dtype)

    def _update(self, position_ids: Tensor) -> None:
        """Look at the positions of a step, as both kinds do; no sequence is longer than the model's positions."""
        sequence_length = F.max_(position_ids) + 1
        if self.kind == "dynamic":
            is_longer = sequence_length > 0
            del is_longer
            is_shorter = sequence_length < 0
            del is_shorter
            return
        if self.long_inv_freq is None:
            self.long_inv_freq = self._long_frequencies()
        inv_freq = F.where(sequence_length > 0, self.long_inv_freq, self.original_inv_freq)
        F.copy_(self.inv_freq, inv_freq)

    def _long_frequencies(self) -> Tensor:
        """Make the frequencies of long sequences, in the first step; their factors are copied from the host."""
        factors = active_tape().empty(self.inv_freq.shape, float32, "lift_fresh")
        features = 2 * self.inv_freq.shape[0]
        shape = F.arange(0, features, 2).float() / features
        return 1.0 / (factors * F.power(10_000.0, shape))


def rotate_half(x: Tensor) -> Tensor:
    """Exchange the halves of the last dimension, the second negated."""
    half = x.shape[-1] // 2
    x1 = x[..., :half]
    x2 = x[..., half:]
    return F.cat((-x2, x1), -1)


def rotated(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys, of shape (batch, heads, tokens, features)."""
    cos = cos.unsqueeze(1)
    sin = sin.unsqueeze(1)
    q_embed = (query * cos) + (rotate_half(query) * sin)
    k_embed = (key * cos) + (rotate_half(key) * sin)
    return q_embed, k_embed


def rotated_partly(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate the first features of queries and keys, of shape (batch, heads, tokens, features)."""
    rotary_dim = cos.shape[-1]
    q_rot, q_pass = query[..., :rotary_dim], query[..., rotary_dim:]
    k_rot, k_pass = key[..., :rotary_dim], key[..., rotary_dim:]
    q_embed, k_embed = rotated(q_rot, k_rot, cos, sin)
    q_embed = F.cat([q_embed, q_pass], -1)
    k_embed = F.cat([k_embed, k_pass], -1)
    return q_embed, k_embed
