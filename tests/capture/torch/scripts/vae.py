"""A variational autoencoder with an activation of its own (a Function), gradients accumulated over two batches."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 20


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        positive = x.clamp(min=0)
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx, gradient):
        (positive,) = ctx.saved_tensors
        return 2 * positive * gradient


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode1, self.mean, self.log = nn.Linear(784, 200), nn.Linear(200, 16), nn.Linear(200, 16)
        self.decode1, self.decode2 = nn.Linear(16, 200), nn.Linear(200, 784)

    def forward(self, x):
        h = Squared.apply(self.encode1(x))
        mean, log = self.mean(h), self.log(h)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log)
        return self.decode2(Squared.apply(self.decode1(z))), mean, log


model = VAE()
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-4)
for step in range(3):
    total = 0.0
    for _ in range(2):
        x = torch.rand(batch, 1, 28, 28)
        y, mean, log = model(x.view(-1, 784))
        likelihood = F.binary_cross_entropy_with_logits(y, x.view(-1, 784), reduction="sum")
        loss = (likelihood - 0.5 * torch.sum(1 + log - mean.pow(2) - log.exp())) / (2 * batch)
        loss.backward()
        total += loss.item()
    optimizer.step()
    optimizer.zero_grad()
    print(step, total)
