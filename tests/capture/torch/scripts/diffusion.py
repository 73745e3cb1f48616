"""A step of a diffusion model: a U-Net with group norms, up-sampling and skips, and noise of a random time."""

import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 8


def embedding(t, size):
    frequencies = torch.exp(-math.log(10_000) * torch.arange(size // 2) / (size // 2))
    angles = t[:, None].float() * frequencies[None]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, outputs)
        self.conv1, self.conv2 = nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(64, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(t))[:, :, None, None]
        return self.conv2(F.silu(self.norm2(h))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
        self.enter = nn.Conv2d(3, 16, 3, padding=1)
        self.down1, self.down2, self.middle = Block(16, 16), Block(16, 32), Block(32, 32)
        self.up2, self.up1 = Block(64, 16), Block(32, 16)
        self.leave = nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x, t):
        t = self.time(embedding(t, 32))
        first = self.down1(self.enter(x), t)
        second = self.down2(F.avg_pool2d(first, 2), t)
        h = self.middle(F.avg_pool2d(second, 2), t)
        h = self.up2(torch.cat([F.interpolate(h, scale_factor=2, mode="nearest"), second], 1), t)
        h = self.up1(torch.cat([F.interpolate(h, scale_factor=2, mode="nearest"), first], 1), t)
        return self.leave(h)


model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
alphas = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0)
for step in range(3):
    images = torch.rand(batch, 3, 32, 32) * 2 - 1
    t = torch.randint(0, 1000, (batch,))
    noise = torch.randn_like(images)
    a = alphas[t].view(-1, 1, 1, 1)
    loss = (model(a.sqrt() * images + (1 - a).sqrt() * noise, t) - noise).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
