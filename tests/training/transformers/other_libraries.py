"""Llama as torchtune and LitGPT compute it, small, as modules of PyTorch: what their classes do, in our own words."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F

FEATURES, INNER, HEADS, GROUPS, WORDS, DEPTH, POSITIONS = 32, 48, 4, 2, 50, 2, 16
CONFIG = {
    "hidden_size": FEATURES,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_key_value_heads": GROUPS,
    "num_hidden_layers": DEPTH,
    "vocab_size": WORDS,
    "max_position_embeddings": POSITIONS,
}


class _Norm(nn.Module):
    def __init__(self, by_power: bool) -> None:
        super().__init__()
        self.weight, self.by_power = nn.Parameter(torch.ones(FEATURES)), by_power

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        dtype = x.dtype
        if self.by_power:
            wide = x.float()
            normed = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(dtype)
            return normed * self.weight
        x = x.float()
        mean = torch.mean(x * x, -1, keepdim=True)
        normed = x * torch.rsqrt(mean + 1e-6)
        normed = normed.to(dtype)
        return normed * self.weight


class _Gated(nn.Module):
    def __init__(self, early: bool) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(FEATURES, INNER, bias=False) for _ in range(2))
        self.down, self.early = nn.Linear(INNER, FEATURES, bias=False), early

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.early:
            gate, up = self.gate(x), self.up(x)
            h = F.silu(gate) * up
        else:
            h = F.silu(self.gate(x))
            h = h * self.up(x)
        return self.down(h)


class _PairRotation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        half = FEATURES // HEADS // 2
        self.register_buffer("theta", torch.zeros(half), persistent=False)
        self.register_buffer("cache", torch.zeros(POSITIONS, half, 2), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        cache = self.cache[: x.shape[1]]
        pairs = x.float().reshape(*x.shape[:-1], -1, 2)
        cache = cache.view(-1, pairs.size(1), 1, pairs.size(3), 2)
        a, b = (lambda: pairs[..., 0]), (lambda: pairs[..., 1])
        parts = [a() * cache[..., 0] - b() * cache[..., 1], b() * cache[..., 0] + a() * cache[..., 1]]
        out = torch.stack(parts, -1)
        del parts
        out = out.flatten(3)
        return out.type_as(x)


class _WideAttention(nn.Module):
    def __init__(self, rotation: nn.Module) -> None:
        super().__init__()
        size = FEATURES // HEADS
        self.q, self.k, self.v = (nn.Linear(FEATURES, count * size, bias=False) for count in (HEADS, GROUPS, GROUPS))
        self.out, self.rotation, self.size = nn.Linear(FEATURES, FEATURES, bias=False), rotation, size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        q = self.rotation(self.q(x).view(batch, tokens, HEADS, self.size)).transpose(1, 2)
        k, v = self.k(x), self.v(x)
        k, v = k.view(batch, tokens, -1, self.size), v.view(batch, tokens, -1, self.size)
        k = self.rotation(k).transpose(1, 2)
        v = v.transpose(1, 2)
        wide = (batch, GROUPS, HEADS // GROUPS, -1, self.size)
        k = k.unsqueeze(2).expand(wide).flatten(1, 2)
        v = v.unsqueeze(2).expand(wide).flatten(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(batch, tokens, -1)
        return self.out(y)


class _PairLayer(nn.Module):
    def __init__(self, rotation: nn.Module) -> None:
        super().__init__()
        self.attention, self.mlp = _WideAttention(rotation), _Gated(False)
        self.before, self.between = _Norm(True), _Norm(True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.before(x)
        attended = self.attention(h)
        h = attended + x
        added = self.mlp(self.between(h))
        return h + added


class Torchtune(nn.Module):
    """`TransformerDecoder` with a tied output matrix, and the loss of its recipes."""

    def __init__(self, chunks: int | None = None) -> None:
        super().__init__()
        self.embedding, self.chunks = nn.Embedding(WORDS, FEATURES), chunks
        rotation = _PairRotation()
        self.layers, self.norm = nn.ModuleList(_PairLayer(rotation) for _ in range(DEPTH)), _Norm(True)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> SimpleNamespace:
        logits = self._logits(input_ids)
        ignored = torch.full((labels.shape[0], 1), -100)
        labels = torch.cat((labels[..., 1:], ignored), 1)
        if self.chunks is None:
            logits = logits.reshape(-1, WORDS)
            return SimpleNamespace(loss=F.cross_entropy(logits, labels.reshape(-1)))
        count = (labels != -100).sum()
        targets = [part.reshape(-1) for part in labels.chunk(self.chunks, 1)]
        logits = [part.reshape(-1, WORDS) for part in logits]
        total = 0.0
        for part, target in zip(logits, targets, strict=True):
            total += F.cross_entropy(part.float(), target, reduction="sum")
        return SimpleNamespace(loss=total / count)

    def _logits(self, tokens: torch.Tensor) -> torch.Tensor | list[torch.Tensor]:
        h = self.embedding(tokens)
        for layer in self.layers:
            h = layer(h)
        h = self.norm(h)
        if self.chunks is None:
            return F.linear(h, self.embedding.weight).float()
        return [F.linear(part, self.embedding.weight) for part in h.chunk(self.chunks, 1)]


def _turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x[..., : x.size(-1) // 2], x[..., x.size(-1) // 2 :]
    rotated = torch.cat((-second, first), -1)
    roped = (x * cos) + (rotated * sin)
    return roped.to(x.dtype)


class _JoinedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.size = FEATURES // HEADS
        self.joined = nn.Linear(FEATURES, (HEADS + 2 * GROUPS) * self.size, bias=False)
        self.out = nn.Linear(FEATURES, FEATURES, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.size()
        shared, size = HEADS // GROUPS, self.size
        joined = self.joined(x)
        joined = joined.view(batch, tokens, GROUPS, shared + 2, size)
        joined = joined.permute(0, 2, 3, 1, 4)
        q, k, v = joined.split((shared, 1, 1), 2)
        k = k.expand(batch, GROUPS, shared, tokens, size)
        v = v.expand(batch, GROUPS, shared, tokens, size)
        q = q.reshape(batch, -1, tokens, size)
        k = k.reshape(batch, -1, tokens, size)
        v = v.reshape(batch, -1, tokens, size)
        q_roped = _turned(q[..., :size], cos, sin)
        k_roped = _turned(k[..., :size], cos, sin)
        q = torch.cat((q_roped, q[..., size:]), -1)
        k = torch.cat((k_roped, k[..., size:]), -1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        y = y.reshape(batch, tokens, FEATURES)
        return self.out(y)


class _JoinedBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.attention, self.between, self.mlp = (
            _Norm(False),
            _JoinedAttention(),
            _Norm(False),
            _Gated(True),
        )

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        normed = self.before(x)
        attended = self.attention(normed, cos, sin)
        x = attended + x
        return self.mlp(self.between(x)) + x


class LitGPT(nn.Module):
    """`GPT`, with the cast of Fabric's precision plug-in and the loss of pretraining."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.embedding = nn.Linear(FEATURES, WORDS, bias=False), nn.Embedding(WORDS, FEATURES)
        self.blocks, self.norm = nn.ModuleList(_JoinedBlock() for _ in range(DEPTH)), _Norm(False)
        self.register_buffer("cos", torch.zeros(POSITIONS, FEATURES // HEADS), persistent=False)
        self.register_buffer("sin", torch.zeros(POSITIONS, FEATURES // HEADS), persistent=False)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> SimpleNamespace:
        logits = self._outputs(input_ids)
        logits = logits.reshape(-1, WORDS)
        return SimpleNamespace(loss=F.cross_entropy(logits, labels.reshape(-1)))

    def _outputs(self, tokens: torch.Tensor) -> torch.Tensor:
        cos, sin = self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]]
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, cos, sin)
        x = self.norm(x)
        output = self.head(x)
        del x
        return output.to(torch.float32)
