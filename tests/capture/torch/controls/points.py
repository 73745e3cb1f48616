"""Clouds of points: each point's nearest ones are looked up again in every layer."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 7
count, nearest = 60, 6


def around(x):
    """(samples, channels, points) -> (samples, 2 channels, points, nearest)."""
    b, c, n = x.shape
    rows = x.transpose(1, 2)
    index = torch.cdist(rows, rows).topk(nearest, dim=-1, largest=False).indices
    index = (index + torch.arange(b)[:, None, None] * n).view(-1)
    others = rows.reshape(b * n, c)[index].view(b, n, nearest, c)
    own = rows.unsqueeze(2).expand(-1, -1, nearest, -1)
    return torch.cat([others - own, own], dim=3).permute(0, 3, 1, 2).contiguous()


class Layer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(2 * inputs, outputs, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.leaky_relu(self.norm(self.conv(around(x))), 0.2).amax(-1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Layer(3, 32), Layer(32, 48)
        self.head = nn.Sequential(nn.Linear(160, 64), nn.Dropout(0.5), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        one = self.one(x)
        y = torch.cat([one, self.two(one)], 1)
        return self.head(torch.cat([y.amax(-1), y.mean(-1)], 1))


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    clouds, kinds = torch.randn(batch, 3, count), torch.randint(0, 10, (batch,))
    loss = F.cross_entropy(model(clouds), kinds, label_smoothing=0.2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
