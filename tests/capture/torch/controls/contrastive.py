"""Images against texts: two towers, the scores of all pairs of the batch, a learned temperature."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 14


def encoder():
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 8, 8)
        self.first = nn.Parameter(torch.zeros(1, 1, 64))
        self.positions = nn.Parameter(torch.randn(1, 17, 64) * 0.02)
        self.words = nn.Embedding(500, 64, padding_idx=0)
        self.image, self.text = encoder(), encoder()
        self.of_image, self.of_text = nn.Linear(64, 48, bias=False), nn.Linear(64, 48, bias=False)
        self.scale = nn.Parameter(torch.tensor(2.66))

    def forward(self, images, words):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.positions
        x = self.of_image(self.image(x)[:, 0])
        padding = words == 0
        y = self.text(self.words(words), src_key_padding_mask=padding)
        y = y.masked_fill(padding[..., None], 0).sum(1) / (~padding).sum(1, keepdim=True)
        y = self.of_text(y)
        return F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).t() * self.scale.exp()


model = Towers()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, amsgrad=True)
for step in range(3):
    images, words = torch.rand(batch, 3, 32, 32), torch.randint(1, 500, (batch, 20))
    words[:, 12:] = 0
    scores = model(images, words)
    targets = torch.arange(batch)
    loss = (F.cross_entropy(scores, targets) + F.cross_entropy(scores.t(), targets)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
