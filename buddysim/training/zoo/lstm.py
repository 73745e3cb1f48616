"""The large LSTM language model of Zaremba et al. 2014: words of the Penn Treebank."""

from __future__ import annotations

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network

_CELLS = 1500
_WORDS = 10_000
_STEPS = 35
_DROPOUT = 0.65


def _lstm_ptb(tokens: int = _STEPS, vocabulary: int = _WORDS, features: int = _CELLS) -> Network:
    net = NetworkBuilder(
        "lstm-ptb",
        (tokens,),
        "Zaremba et al. 2014, arXiv:1409.2329, Section 4.1, the large model",
        f"2 LSTM layers of {features} cells, {tokens} steps, {vocabulary} words",
    )
    net.add("embedding", name="words", vocabulary=vocabulary, features=features)
    net.add("dropout", name="drop0", probability=_DROPOUT)
    for number in (1, 2):
        net.add("lstm", name=f"lstm{number}", features=features)
        net.add("dropout", name=f"drop{number}", probability=_DROPOUT)
    net.add("fc", name="scores", features=vocabulary)
    net.add("softmax", name="softmax")
    return net.build()


NETWORKS = {"lstm-ptb": _lstm_ptb}
