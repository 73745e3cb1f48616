"""Modules as users write them: RMSNorm, rotary embeddings, grouped queries, fused attention, experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

WIDE, HEADS, GROUPS, TOKENS = 32, 4, 2, 12


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Halves, as most write it: `chunk`."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def rotated_pairs(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Pairs as complex numbers, as Meta's Llama writes it."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * angles).flatten(3).type_as(x)


class Attention(nn.Module):
    """Grouped queries with rotary embeddings."""

    def __init__(self, fused: bool, grouped: bool) -> None:
        super().__init__()
        self.fused, self.grouped = fused, grouped
        size = WIDE // HEADS
        self.wq = nn.Linear(WIDE, WIDE, bias=False)
        self.wkv = nn.Linear(WIDE, 2 * GROUPS * size, bias=False)
        self.wo = nn.Linear(WIDE, WIDE, bias=False)
        steps = torch.outer(torch.arange(TOKENS).float(), 10000 ** -(torch.arange(0, size, 2) / size))
        self.register_buffer("cos", steps.cos(), persistent=False)
        self.register_buffer("sin", steps.sin(), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        q = self.wq(x).view(batch, tokens, HEADS, -1).transpose(1, 2)
        k, v = self.wkv(x).view(batch, tokens, 2, GROUPS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        cos, sin = self.cos[:tokens], self.sin[:tokens]
        q, k = rotated(q, cos, sin).type_as(v), rotated(k, cos, sin).type_as(v)
        if not self.grouped:
            k, v = (one.repeat_interleave(HEADS // GROUPS, 1) for one in (k, v))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.grouped)
        else:
            scores = q @ k.transpose(-2, -1) * (WIDE // HEADS) ** -0.5
            later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
            y = scores.masked_fill(later, -torch.inf).softmax(-1) @ v
        return self.wo(y.transpose(1, 2).reshape(batch, tokens, -1))


class Block(nn.Module):
    """A block of a decoder."""

    def __init__(self, fused: bool, grouped: bool, norm: Callable[[int], nn.Module] = nn.RMSNorm) -> None:
        super().__init__()
        self.norm1, self.norm2 = norm(WIDE), norm(WIDE)
        self.attention = Attention(fused, grouped)
        self.gate, self.up = nn.Linear(WIDE, 56, bias=False), nn.Linear(WIDE, 56, bias=False)
        self.down = nn.Linear(56, WIDE, bias=False)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.attention(self.norm1(x)))
        y = self.norm2(x)
        return x + self.dropout(self.down(F.silu(self.gate(y)) * self.up(y)))


class Decoder(nn.Module):
    """A decoder with tied embeddings, frozen or not, checkpointed or not."""

    def __init__(self, fused: bool = True, grouped: bool = True, frozen: bool = False, checkpointed: bool = False):
        super().__init__()
        self.embedding = nn.Embedding(77, WIDE)
        self.blocks = nn.ModuleList(Block(fused, grouped) for _ in range(2))
        self.norm = nn.RMSNorm(WIDE, eps=1e-6)
        self.head = nn.Linear(WIDE, 77, bias=False)
        self.head.weight = self.embedding.weight
        self.checkpointed = checkpointed
        if frozen:
            self.blocks[0].requires_grad_(False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(self.norm(x))


class Interleaved(nn.Module):
    """Rotary embeddings in pairs, query and key norms, a soft cap."""

    def __init__(self) -> None:
        super().__init__()
        size = WIDE // HEADS
        self.qkv, self.out = nn.Linear(WIDE, 3 * WIDE), nn.Linear(WIDE, WIDE)
        self.q_norm, self.k_norm = nn.RMSNorm(size), nn.RMSNorm(size)
        steps = torch.outer(torch.arange(TOKENS).float(), 10000 ** -(torch.arange(0, size, 2) / size))
        self.register_buffer("angles", torch.polar(torch.ones_like(steps), steps)[:, None], persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (one.unflatten(-1, (HEADS, -1)) for one in self.qkv(x).split(WIDE, -1))
        q, k = rotated_pairs(self.q_norm(q), self.angles), rotated_pairs(self.k_norm(k), self.angles)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k)
        scores = 50 * torch.tanh(scores / 50)
        return self.out(torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2))


class Convolutional(nn.Module):
    """A residual network's beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.GroupNorm(2, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x)), inplace=True), 2)
        x = F.gelu(self.norm2(self.conv2(x)) + x)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Variational(nn.Module):
    """A recurrent layer, an encoder of PyTorch's, a bilinear form, a sample; indices made of lists."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.GRU(WIDE, 24, batch_first=True)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(24, 4, 48, batch_first=True), 2)
        self.form = nn.Bilinear(24, 24, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.encoder(self.recurrent(x)[0])
        mean, deviation, rest = self.form(y, y).unbind(-1)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * deviation) + rest[..., [-1]]
        return torch.stack([z, z]).index_select(1, torch.tensor([0, 2])).amax(0) + torch.logsumexp(z, 0)


def _tokens() -> dict[str, torch.Tensor]:
    return {"tokens": torch.randint(0, 77, (3, TOKENS))}


def _features() -> dict[str, torch.Tensor]:
    return {"x": torch.randn(3, TOKENS, WIDE)}


#: By name: what makes a module, and its batch.
MODULES: dict[str, tuple[Callable[[], nn.Module], Callable[[], dict[str, Any]]]] = {
    "decoder": (Decoder, _tokens),
    "decoder, repeated heads": (lambda: Decoder(grouped=False), _tokens),
    "decoder, written out": (lambda: Decoder(fused=False, grouped=False), _tokens),
    "decoder, frozen block": (lambda: Decoder(frozen=True), _tokens),
    "decoder, checkpointed": (lambda: Decoder(checkpointed=True), _tokens),
    "rotary pairs": (Interleaved, _features),
    "recurrent layer and encoder": (Variational, _features),
    "convolutions": (Convolutional, lambda: {"x": torch.randn(3, 3, 8, 8)}),
}
