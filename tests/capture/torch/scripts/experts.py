"""A transformer with a mixture of experts whose blocks are recomputed (activation checkpointing)."""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 6
tokens, width, experts, vocabulary = 40, 64, 4, 300


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) * 0.05)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) * 0.05)

    def forward(self, x):
        b, t, c = x.shape
        flat = x.reshape(b * t, c)
        scores = self.gate(flat)
        weights, selected = scores.softmax(-1).topk(2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        routing = torch.zeros_like(scores).scatter(1, selected, weights)
        hidden = F.silu(torch.einsum("nc,ech->enh", flat, self.up))
        y = torch.einsum("enh,ehc->enc", hidden, self.down)
        y = (y * routing.t().unsqueeze(-1)).sum(0)
        return y.view(b, t, c), torch.logsumexp(scores, -1).pow(2).mean()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.experts = Experts()

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        y, penalty = self.experts(self.norm2(x))
        return x + y, penalty


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x):
        h, penalties = self.embed(x), []
        for block in self.blocks:
            h, penalty = checkpoint(block, h, use_reentrant=False)
            penalties.append(penalty)
        return self.head(h), torch.stack(penalties).sum()


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    x = torch.randint(0, vocabulary, (batch, tokens + 1))
    logits, penalty = model(x[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, vocabulary), x[:, 1:].reshape(-1)) + 1e-3 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
