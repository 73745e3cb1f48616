"""A network that solves a heat equation: derivatives of its output are in the loss, so gradients of gradients."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 200


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


model = nn.Sequential(
    nn.Linear(2, 48), Sine(), nn.Linear(48, 48), Sine(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
for step in range(4):
    points = torch.rand(batch, 2, requires_grad=True)
    u = model(points)
    (first,) = torch.autograd.grad(u.sum(), points, create_graph=True)
    (second,) = torch.autograd.grad(first[:, 0].sum(), points, create_graph=True)
    residual = first[:, 1] - 0.1 * second[:, 0]
    edge = torch.cat([torch.rand(batch, 1), torch.zeros(batch, 1)], 1)
    start = model(edge)[:, 0] - torch.sin(torch.pi * edge[:, 0])
    loss = residual.square().mean() + start.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(step, loss.item())
