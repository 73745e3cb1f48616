"""A network on graphs: messages along edges are added at their ends; a batch is one large graph."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 24
nodes, edges, width = 20, 60, 48


class Messages(nn.Module):
    def __init__(self):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU())
        self.update = nn.GRUCell(width, width)

    def forward(self, h, source, target):
        m = self.message(torch.cat([h[source], h[target]], dim=1))
        total = torch.zeros_like(h).index_add_(0, target, m)
        degree = torch.zeros(h.shape[0], 1).index_add_(0, target, torch.ones(len(target), 1))
        return self.update(total / degree.clamp(min=1), h)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(8, width)
        self.layers = nn.ModuleList(Messages() for _ in range(3))
        self.leave = nn.Linear(width, 1)

    def forward(self, x, source, target, graph):
        h = self.enter(x).relu()
        for layer in self.layers:
            h = layer(h, source, target)
        pooled = torch.zeros(batch, width).index_add_(0, graph, h)
        return self.leave(pooled).squeeze(-1)


model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(3):
    offset = torch.arange(batch).repeat_interleave(edges) * nodes
    source = torch.randint(0, nodes, (batch * edges,)) + offset
    target = torch.randint(0, nodes, (batch * edges,)) + offset
    graph = torch.arange(batch).repeat_interleave(nodes)
    x, y = torch.randn(batch * nodes, 8), torch.randn(batch)
    optimizer.zero_grad()
    loss = nn.functional.smooth_l1_loss(model(x, source, target, graph), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
