"""Speech to letters: convolutions, a GRU of both directions on packed sequences, CTC."""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 8


class Speech(Dataset):
    def __len__(self):
        return 8 * batch

    def __getitem__(self, index):
        frames = 60 + 5 * (index % 5)
        return torch.randn(frames, 32), torch.randint(1, 28, (8 + index % 4,))


def collate(samples):
    features = nn.utils.rnn.pad_sequence([one for one, _ in samples], batch_first=True)
    letters = nn.utils.rnn.pad_sequence([one for _, one in samples], batch_first=True)
    return features, letters, torch.tensor([len(one) for one, _ in samples]), torch.tensor([len(y) for _, y in samples])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(32, 64, 5, 2, 2), nn.BatchNorm1d(64), nn.Hardtanh(0, 20, inplace=True))
        self.gru = nn.GRU(64, 64, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(128, 28)

    def forward(self, x, lengths):
        x = self.front(x.transpose(1, 2)).transpose(1, 2)
        packed = pack_padded_sequence(x, (lengths + 1) // 2, batch_first=True, enforce_sorted=False)
        y, lengths = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.out(y).log_softmax(-1), lengths


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
for step, (features, letters, frames, counts) in enumerate(DataLoader(Speech(), batch_size=batch, collate_fn=collate)):
    scores, lengths = model(features, frames)
    loss = F.ctc_loss(scores.transpose(0, 1), letters, lengths, counts, zero_infinity=True)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    print(step, loss.item())
    if step == 2:
        break
