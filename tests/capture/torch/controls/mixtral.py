"""Mixtral of transformers: what an expert gets depends on the tokens."""

import sys

import torch
from transformers import MixtralConfig, MixtralForCausalLM

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 4
config = MixtralConfig(
    vocab_size=400,
    hidden_size=96,
    intermediate_size=192,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    num_local_experts=6,
    num_experts_per_tok=2,
    output_router_logits=True,
)
model = MixtralForCausalLM(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    tokens = torch.randint(0, 400, (batch, 64))
    loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
