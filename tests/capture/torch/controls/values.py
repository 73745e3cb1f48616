"""Values of actions from a memory of the past: a second network that follows slowly, the best of two, TD errors."""

import copy
import random
import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
random.seed(0)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 32
actions = 5


class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 16, 4, 2),
            nn.ELU(),
            nn.Conv2d(16, 32, 3),
            nn.ELU(),
            nn.Flatten(),
            nn.Linear(32 * 49, 128),
            nn.ELU(),
        )
        self.value, self.advantage = nn.Linear(128, 1), nn.Linear(128, actions)

    def forward(self, x):
        h = self.body(x.float() / 255)
        advantage = self.advantage(h)
        return self.value(h) + advantage - advantage.mean(1, keepdim=True)


online = Dueling()
target = copy.deepcopy(online).requires_grad_(False).eval()
memory = [
    (torch.randint(0, 256, (4, 20, 20), dtype=torch.uint8), random.randrange(actions), random.random(), n % 7 == 0)
    for n in range(300)
]
optimizer = torch.optim.RMSprop(online.parameters(), lr=1e-4, momentum=0.9, centered=True)
for step in range(4):
    samples = random.sample(memory, batch)
    states = torch.stack([one[0] for one in samples])
    taken = torch.tensor([one[1] for one in samples])
    rewards = torch.tensor([one[2] for one in samples])
    ended = torch.tensor([one[3] for one in samples])
    following = torch.stack([random.choice(memory)[0] for _ in samples])
    with torch.no_grad():
        best = online(following).argmax(1, keepdim=True)
        expected = rewards + 0.99 * target(following).gather(1, best).squeeze(1) * ~ended
    values = online(states).gather(1, taken[:, None]).squeeze(1)
    loss = F.huber_loss(values, expected, reduction="none").mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(online.parameters(), 10)
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
            slow.lerp_(fast, 0.005)
    print(step, loss.item())
