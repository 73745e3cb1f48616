"""A generative adversarial network: two networks, two optimizers, spectral normalization."""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 10
generator = nn.Sequential(
    nn.ConvTranspose2d(32, 64, 4),
    nn.BatchNorm2d(64),
    nn.ReLU(),
    nn.ConvTranspose2d(64, 32, 4, 2, 1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.ConvTranspose2d(32, 3, 4, 2, 1),
    nn.Tanh(),
)
discriminator = nn.Sequential(
    spectral_norm(nn.Conv2d(3, 32, 4, 2, 1)),
    nn.LeakyReLU(0.2),
    spectral_norm(nn.Conv2d(32, 64, 4, 2, 1)),
    nn.LeakyReLU(0.2),
    nn.Flatten(),
    nn.Linear(64 * 4 * 4, 1),
)
of_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
for step in range(3):
    real, z = torch.rand(batch, 3, 16, 16) * 2 - 1, torch.randn(batch, 32, 1, 1)
    fake = generator(z)
    loss_d = F.relu(1 - discriminator(real)).mean() + F.relu(1 + discriminator(fake.detach())).mean()
    of_discriminator.zero_grad()
    loss_d.backward()
    of_discriminator.step()
    loss_g = -discriminator(fake).mean()
    of_generator.zero_grad()
    loss_g.backward()
    of_generator.step()
    print(step, loss_d.item(), loss_g.item())
