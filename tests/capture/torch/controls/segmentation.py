"""A U-Net for segmentation in mixed precision: two losses, gradients of two batches, clipped."""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 6


class Shapes(Dataset):
    def __len__(self):
        return 16 * batch

    def __getitem__(self, index):
        image = torch.randn(1, 48, 48)
        return image, (image[0] > 0.5).long()


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.LeakyReLU(0.1, inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.LeakyReLU(0.1, inplace=True),
        nn.Dropout2d(0.1),
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = double(1, 12), double(12, 24), double(24, 48)
        self.pool = nn.MaxPool2d(2)
        self.grow2, self.grow1 = nn.ConvTranspose2d(48, 24, 2, stride=2), nn.ConvTranspose2d(24, 12, 2, stride=2)
        self.up2, self.up1 = double(48, 24), double(24, 12)
        self.out = nn.Conv2d(12, 2, 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(self.pool(one))
        x = self.grow2(self.bottom(self.pool(two)))
        x = self.grow1(self.up2(torch.cat([x, two], 1)))
        return self.out(self.up1(torch.cat([x, one], 1)))


def dice(logits, mask):
    p = logits.float().softmax(1)[:, 1]
    overlap = (p * mask).sum((1, 2))
    return 1 - ((2 * overlap + 1) / (p.sum((1, 2)) + mask.sum((1, 2)) + 1)).mean()


model = UNet()
optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
for count, (images, masks) in enumerate(DataLoader(Shapes(), batch_size=batch)):
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(images)
        loss = (F.cross_entropy(logits, masks) + dice(logits, masks)) / 2
    loss.backward()
    if count % 2:
        torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(count // 2, loss.item())
    if count == 5:
        break
