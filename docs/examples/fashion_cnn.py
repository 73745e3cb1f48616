"""A network of five CONV layers learns Fashion-MNIST (Debian's dataset-fashion-mnist), on one thread.

python fashion_cnn.py [STEPS] [BATCH]
"""

import gzip
import sys

import numpy as np
import torch
from torch import nn

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
batch = int(sys.argv[2]) if len(sys.argv) > 2 else 32
folder = "/usr/share/datasets/fashion-mnist/"


def read(name, offset):
    with gzip.open(folder + name) as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


images = torch.from_numpy(
    read("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).astype(np.float32) / 255 - 0.286
)
labels = torch.from_numpy(read("train-labels-idx1-ubyte.gz", 8).astype(np.int64))

torch.manual_seed(0)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
network = nn.Sequential()
channels = 1
for number, width in enumerate((16, 16, 32, 32, 64), 1):
    network.add_module(f"conv{number}", nn.Conv2d(channels, width, 3, padding=1))
    network.add_module(f"relu{number}", nn.ReLU())
    channels = width
    if number in (2, 4, 5):
        network.add_module(f"pool{number}", nn.MaxPool2d(2))
network.add_module("flatten", nn.Flatten())
network.add_module("fc1", nn.Linear(64 * 3 * 3, 128))
network.add_module("relu6", nn.ReLU())
network.add_module("drop", nn.Dropout())
network.add_module("fc2", nn.Linear(128, 10))

optimizer = torch.optim.Adam(network.parameters(), 0.001)
for step in range(steps):
    samples = torch.randint(0, len(images), (batch,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(network(images[samples]), labels[samples])
    loss.backward()
    optimizer.step()
    if step % 20 == 0 or step == steps - 1:
        print(f"step {step} loss {loss.item():.6f}")
