"""BERT of transformers for classification: padded sentences, a schedule of learning rates, clipped gradients."""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 8
config = BertConfig(
    vocab_size=1000, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, num_labels=3
)
model = BertForSequenceClassification(config).train()
tokens = torch.randint(0, 1000, (64, 48))
mask = (torch.arange(48)[None, :] < torch.randint(20, 49, (64, 1))).long()
loader = DataLoader(TensorDataset(tokens, mask, torch.randint(0, 3, (64,))), batch_size=batch, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 10)
for step, (x, attention_mask, y) in enumerate(loader):
    optimizer.zero_grad()
    loss = model(input_ids=x, attention_mask=attention_mask, labels=y).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    print(step, loss.item())
    if step == 2:
        break
