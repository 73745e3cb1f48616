"""Loss and gradients of a tiny Llama, compiled by ``torch.compile`` and without it; prints their differences."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, TOKENS, WORDS, LAYERS = 64, 4, 64, 96, 2


class RootMeanSquare(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = RootMeanSquare(), RootMeanSquare()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.before(x)).view(TOKENS, 3, HEADS, -1).permute(1, 2, 0, 3)
        scores = rotated(q, cos, sin) @ rotated(k, cos, sin).transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
        x = x + self.out((torch.softmax(scores + mask, -1) @ v).transpose(0, 1).reshape(TOKENS, WIDTH))
        h = self.between(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last = RootMeanSquare()
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(TOKENS)[:, None] / 10000 ** (torch.arange(WIDTH // HEADS // 2) / (WIDTH // HEADS // 2))
        mask = torch.full((TOKENS, TOKENS), -float("inf")).triu(1)
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin(), mask)
        return functional.cross_entropy(self.head(self.last(x))[:-1], tokens[1:])


def main() -> None:
    torch.manual_seed(0)
    model = Llama()
    tokens = torch.randint(0, WORDS, (TOKENS,))
    plain = model(tokens)
    plain.backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    compiled = torch.compile(model)(tokens)
    compiled.backward()
    worst = max(
        float((parameter.grad - gradient).abs().max())
        for parameter, gradient in zip(model.parameters(), gradients, strict=True)
    )
    print(f"loss {float((compiled - plain).abs()):.3g} gradients {worst:.3g}")


main()
