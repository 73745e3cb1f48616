"""Rotary embeddings as complex numbers: each pair of neighbouring features times a number of length 1."""

from __future__ import annotations

from buddysim.training.architectures.blocks.rotary import RotaryEmbedding
from buddysim.training.autograd import functional as F
from buddysim.training.autograd.dtypes import float32
from buddysim.training.autograd.tensor import Tensor


class ComplexRotaryEmbedding(RotaryEmbedding):
    """One tensor for cosines and sines."""

    def forward(self, features: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rotations of all positions, twice."""
        freqs = position_ids.unsqueeze(-1).float() * self.inv_freq.to(float32)
        freqs_cis = F.polar(freqs)
        freqs_cis = freqs_cis * 1.0
        return freqs_cis, freqs_cis


def rotated_as_complex(query: Tensor, key: Tensor, freqs_cis: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys, of shape (batch, tokens, heads, features)."""
    xq_, xk_ = _pairs(query), _pairs(key)
    xq_out = F.view_as_real(xq_ * freqs_cis[:, :, None, :]).flatten(3)
    xk_out = F.view_as_real(xk_ * freqs_cis[:, :, None, :]).flatten(3)
    return xq_out.type_as(query), xk_out.type_as(key)


def _pairs(x: Tensor) -> Tensor:
    return F.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
