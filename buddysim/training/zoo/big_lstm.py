"""BIG LSTM (Jozefowicz et al. 2016, Table 1: 2-layer LSTM-8192-1024): a language model of a billion words.

Two layers of 8192 cells whose outputs are projected to 1024; 793,471 words; 20 steps in a sample. A training step
scores 8192 sampled words, not all of them.
"""

from __future__ import annotations

from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network

_WORDS = 793_471
_SAMPLED = 8192
_STEPS = 20
_CELLS = 8192
_PROJECTED = 1024


def _big_lstm() -> Network:
    net = NetworkBuilder(
        "big-lstm",
        (_STEPS,),
        "Jozefowicz et al. 2016, arXiv:1602.02410, Table 1 and Section 5; steps and samples of rafaljozefowicz/lm",
        "2 LSTM layers, 8192 cells and 1024 projected, 20 steps, sampled softmax",
    )
    net.add("embedding", name="embedding", vocabulary=_WORDS, features=_PROJECTED)
    net.add("dropout", name="drop0", probability=0.1)
    for number in (1, 2):
        net.add("lstm", name=f"lstm{number}", features=_CELLS, projection=_PROJECTED)
        net.add("dropout", name=f"drop{number}", probability=0.1)
    net.add("fc", name="scores", features=_SAMPLED, rows=_WORDS)
    net.add("softmax", name="softmax")
    return net.build()


NETWORKS = {"big-lstm": _big_lstm}
