"""BigLSTM: a language model of two recurrent layers whose state is projected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buddysim.workloads.training import words
from buddysim.workloads.training.optimizers import adam
from buddysim.workloads.training.problem import StudyNetwork, TrainingProblem, of_paper

if TYPE_CHECKING:
    import torch

ORDER = 120
SUMMARY = "BigLSTM in training: a language model of two LSTM layers with projections; Python's reference as text"
PAPER = "BigLSTM"
WHY = "Weights at full precision; only gradients and state of words that didn't occur are zero."
_STATE, _PROJECTED, _LAYERS = 8192, 1024, 2
_GATES = 4


def build(problem: TrainingProblem) -> torch.nn.Module:
    """BigLSTM of Jozefowicz et al. 2016 (LSTM-8192-1024) in the stated width, with a softmax over all words.

    Adam trains it: the original's Adagrad doesn't halve the loss in so few steps.
    """
    import torch
    from torch import nn

    state, projected = round(_STATE * problem.width), round(_PROJECTED * problem.width)

    class LstmLayer(nn.Module):  # type: ignore[misc]
        """A recurrent layer that computes the input's part of all gates in one product, as cuDNN does."""

        def __init__(self) -> None:
            super().__init__()
            self.inputs = nn.Linear(projected, _GATES * state)
            self.recurrent = nn.Linear(projected, _GATES * state, bias=False)
            self.projection = nn.Linear(state, projected, bias=False)

        def forward(self, x: Any) -> Any:
            steps, batch = x.shape[:2]
            driven = self.inputs(x.reshape(steps * batch, -1)).reshape(steps, batch, -1)
            hidden, cell = x.new_zeros(batch, projected), x.new_zeros(batch, state)
            outputs = []
            for part in driven.unbind():
                gates = part + self.recurrent(hidden)
                taken, forget, new, shown = gates.chunk(_GATES, 1)
                cell = torch.sigmoid(forget) * cell + torch.sigmoid(taken) * torch.tanh(new)
                hidden = self.projection(torch.sigmoid(shown) * torch.tanh(cell))
                outputs.append(hidden)
            return torch.stack(outputs)

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(words.VOCABULARY, projected)
            self.layers = nn.ModuleList([LstmLayer() for _ in range(_LAYERS)])
            self.dropout = nn.Dropout(0.1)
            self.last = nn.Linear(projected, words.VOCABULARY)

        def forward(self, numbers: Any) -> Any:
            x = self.table(numbers.t().contiguous())
            for layer in self.layers:
                x = self.dropout(layer(x))
            return self.last(x.transpose(0, 1).reshape(-1, x.shape[-1]))

    return Model()


NETWORK = StudyNetwork(build, words.batches, adam)
PROBLEMS = {
    "small": {
        "profile": TrainingProblem(32, 10, 0.0625, 400, 0.006, 1, 0, 25),
        "replay": TrainingProblem(32, 10, 0.0625, 400, 0.006, 2, 1, 25),
    },
    "medium": {
        "profile": TrainingProblem(32, 10, 0.125, 400, 0.004, 1, 0, 90),
        "replay": TrainingProblem(32, 10, 0.125, 400, 0.004, 2, 1, 90),
    },
}
_OF_20_WORDS = {
    "profile": TrainingProblem(16, 20, 0.0625, 400, 0.006, 1, 0, 30),
    "replay": TrainingProblem(16, 20, 0.0625, 400, 0.006, 2, 1, 30),
}
PROBLEMS["paper"] = of_paper(_OF_20_WORDS, 16, 20)
