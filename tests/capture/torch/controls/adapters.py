"""GPT-2 of transformers with frozen weights and low-rank adapters, blocks recomputed, gradients of two batches."""

import sys

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.pytorch_utils import Conv1D

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 4


class Adapter(nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        inputs, outputs = base.weight.shape
        self.base, self.drop = base, nn.Dropout(0.05)
        self.a, self.b = nn.Linear(inputs, rank, bias=False), nn.Linear(rank, outputs, bias=False)
        nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return self.base(x) + 2 * self.b(self.a(self.drop(x)))


config = GPT2Config(vocab_size=500, n_positions=80, n_embd=96, n_layer=3, n_head=4)
model = GPT2LMHeadModel(config).requires_grad_(False)
for block in model.transformer.h:
    assert isinstance(block.attn.c_attn, Conv1D)
    block.attn.c_attn = Adapter(block.attn.c_attn, 4)
model.gradient_checkpointing_enable({"use_reentrant": False})
model.enable_input_require_grads()
model.train()
optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-3)
for step in range(3):
    optimizer.zero_grad()
    total = 0.0
    for _ in range(2):
        tokens = torch.randint(0, 500, (batch, 72))
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss / 2
        loss.backward()
        total += loss.item()
    optimizer.step()
    print(step, total)
