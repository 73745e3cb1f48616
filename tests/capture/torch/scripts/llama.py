"""Llama of transformers from a configuration, in mixed precision."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 4
config = LlamaConfig(
    vocab_size=512,
    hidden_size=128,
    intermediate_size=352,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
)
model = LlamaForCausalLM(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    tokens = torch.randint(0, 512, (batch, 96))
    with torch.autocast("cpu", torch.bfloat16):
        output = model(input_ids=tokens, labels=tokens, use_cache=False)
    output.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, output.loss.item())
