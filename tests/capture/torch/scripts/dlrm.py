"""A recommendation model: bags of embeddings, interactions of all pairs, Adagrad."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 128
tables, width, looked_up = 6, 16, 3


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(1000 * (n + 1), width, mode="sum") for n in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(pairs + width, 64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid())
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, offset=-1), persistent=False)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        rows = [x] + [bag(sparse[n]) for n, bag in enumerate(self.bags)]
        t = torch.stack(rows, dim=1)
        products = torch.bmm(t, t.transpose(1, 2))
        flat = products[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, flat], dim=1)).squeeze(1)


model = DLRM()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
criterion = nn.BCELoss()
for step in range(3):
    dense = torch.rand(batch, 13)
    sparse = [torch.randint(0, 1000 * (n + 1), (batch, looked_up)) for n in range(tables)]
    clicks = torch.randint(0, 2, (batch,)).float()
    optimizer.zero_grad()
    loss = criterion(model(dense, sparse), clicks)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
