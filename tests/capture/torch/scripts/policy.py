"""Reinforcement learning: rollouts of a policy without gradients, then a step on all of them (PPO's loss)."""

import sys

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
torch.set_num_threads(1)
environments = int(sys.argv[1]) if len(sys.argv) > 1 else 64
steps, state, actions = 12, 24, 6


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(state, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.actor, self.critic = nn.Linear(128, actions), nn.Linear(128, 1)

    def forward(self, x):
        h = self.body(x)
        return self.actor(h), self.critic(h).squeeze(-1)


model = Policy()
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-4)
change = torch.randn(actions, state) * 0.1
x = torch.randn(environments, state)
for step in range(3):
    seen, taken, logs, values, rewards = [], [], [], [], []
    for _ in range(steps):
        with torch.no_grad():
            logits, value = model(x)
            chance = Categorical(logits=logits)
            action = chance.sample()
            logs.append(chance.log_prob(action))
        seen.append(x)
        taken.append(action)
        values.append(value)
        x = 0.9 * x + change[action] + 0.05 * torch.randn_like(x)
        rewards.append(-x.pow(2).mean(dim=1))
    returns, total = [], torch.zeros(environments)
    for reward in reversed(rewards):
        total = reward + 0.95 * total
        returns.insert(0, total)
    seen, taken, logs, values = torch.cat(seen), torch.cat(taken), torch.cat(logs), torch.cat(values)
    returns = torch.cat(returns)
    advantages = returns - values
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    logits, value = model(seen)
    chance = Categorical(logits=logits)
    ratio = (chance.log_prob(taken) - logs).exp()
    surrogate = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
    loss = -surrogate + 0.5 * (returns - value).pow(2).mean() - 0.01 * chance.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
