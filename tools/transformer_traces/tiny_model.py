"""A tiny language model of bytes, as Llama's layers are, and its training on the help texts that Python ships."""

from __future__ import annotations

from pydoc_data.topics import topics

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, LAYERS, HIDDEN = 256, 4, 4, 768
HEAD = WIDTH // HEADS
LENGTH = 128
BATCH = 8


class RMSNorm(nn.Module):
    """Root-mean-square normalization with a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Layer(nn.Module):
    """Causal attention with rotary positions, and a gated product; both add to their input."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.norm_hidden = RMSNorm(), RMSNorm()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate_up = nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.seen: dict[str, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, HEAD)).permute(2, 0, 3, 1, 4)
        query, key = rotated(query), rotated(key)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        attended = self.out(mixed.transpose(1, 2).flatten(2))
        after = x + attended
        gate, up = self.gate_up(self.norm_hidden(after)).chunk(2, -1)
        hidden = functional.silu(gate) * up
        result: Tensor = after + self.down(hidden)
        self.seen = {"x": x, "query": query, "key": key, "value": value, "attended": attended, "hidden": hidden}
        return result


class TinyModel(nn.Module):
    """Predicts the next byte."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = RMSNorm(), nn.Linear(WIDTH, 256, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def rotated(x: Tensor) -> Tensor:
    """Return x with each pair of its halves turned by its position."""
    angles = torch.outer(torch.arange(x.shape[-2]), 10_000 ** -torch.linspace(0, 1, HEAD // 2 + 1)[:-1])
    cos, sin = angles.cos(), angles.sin()
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)


def text() -> Tensor:
    """Return the help texts as bytes."""
    data = "\n".join(topics[name] for name in sorted(topics)).encode()
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def trained(steps: int) -> tuple[TinyModel, torch.optim.AdamW, float]:
    """Return the model after some steps, its optimizer, and the mean loss of the last ten, in nats per byte."""
    torch.manual_seed(0)
    data, model = text(), TinyModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses = []
    for _ in range(steps):
        starts = torch.randint(len(data) - LENGTH - 1, (BATCH,))
        batch = torch.stack([data[start : start + LENGTH + 1] for start in starts]).long()
        loss = functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, optimizer, sum(losses[-10:]) / len(losses[-10:])


def read(model: TinyModel, conversations: int, length: int = LENGTH) -> None:
    """Run the model on texts that its training drew from; each layer then has what it computed."""
    data = text()
    starts = torch.linspace(0, len(data) - length - 1, conversations).long()
    with torch.no_grad():
        model(torch.stack([data[start : start + length] for start in starts]).long())
