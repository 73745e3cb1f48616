"""A residual network on images from a data loader, with an average of its weights (EMA)."""

import copy
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 16


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.act = nn.ReLU(inplace=True)
        self.short = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(self.act(self.bn1(self.conv1(x)))))
        return self.act(y + self.short(x))


model = nn.Sequential(
    nn.Conv2d(3, 16, 3, 1, 1, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(inplace=True),
    nn.MaxPool2d(2),
    Residual(16, 16, 1),
    Residual(16, 32, 2),
    Residual(32, 64, 2),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(64, 10),
)
average = copy.deepcopy(model).requires_grad_(False)
data = TensorDataset(torch.randn(128, 3, 32, 32), torch.randint(0, 10, (128,)))
loader = DataLoader(data, batch_size=batch, shuffle=True, drop_last=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for step, (images, labels) in enumerate(loader):
    loss = criterion(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mean, weight in zip(average.parameters(), model.parameters(), strict=True):
            mean.mul_(0.99).add_(weight, alpha=0.01)
    print(step, loss.item())
    if step == 3:
        break
