"""A language model with an LSTM whose state goes on from batch to batch; time comes first."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 10
length, vocabulary, width = 30, 400, 128
text = torch.randint(0, vocabulary, (batch * 400,)).view(batch, -1).t().contiguous()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.drop = nn.Dropout(0.2)
        self.lstm = nn.LSTM(width, width, 2, dropout=0.2)
        self.decode = nn.Linear(width, vocabulary)

    def forward(self, x, hidden):
        y, hidden = self.lstm(self.drop(self.embed(x)), hidden)
        return self.decode(self.drop(y)), hidden


model = Model()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
hidden = (torch.zeros(2, batch, width), torch.zeros(2, batch, width))
for step in range(3):
    x = text[step * length : (step + 1) * length]
    y = text[step * length + 1 : (step + 1) * length + 1]
    hidden = tuple(one.detach() for one in hidden)
    optimizer.zero_grad()
    output, hidden = model(x, hidden)
    loss = criterion(output.reshape(-1, vocabulary), y.reshape(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    print(step, loss.item())
