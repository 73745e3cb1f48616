"""T5 of transformers: encoder and decoder, Adafactor-free training with SGD's momentum."""

import sys

import torch
from transformers import T5Config, T5ForConditionalGeneration

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 6
config = T5Config(
    vocab_size=600, d_model=96, d_kv=24, d_ff=256, num_layers=2, num_heads=4, decoder_start_token_id=0, dropout_rate=0.1
)
model = T5ForConditionalGeneration(config).train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
source, target = torch.randint(1, 600, (batch, 40)), torch.randint(1, 600, (batch, 24))
for step in range(3):
    optimizer.zero_grad()
    output = model(input_ids=source, labels=target)
    output.loss.backward()
    optimizer.step()
    print(step, output.loss.item())
