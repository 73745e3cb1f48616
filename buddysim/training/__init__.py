"""Networks in training: layer graphs, a network zoo, layer times, memory and timelines.

``from buddysim.training import load_network, simulate`` works; each module is imported at the first use of its names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.first_use import names_on_first_use

if TYPE_CHECKING:
    from buddysim.training.driver import simulate
    from buddysim.training.named_network import load_network
    from buddysim.training.networks.builder import NetworkBuilder
    from buddysim.training.networks.graph import Conv, Gemm, Layer, Network, Pooling
    from buddysim.training.result import TrainingResult

__all__ = [
    "Conv",
    "Gemm",
    "Layer",
    "Network",
    "NetworkBuilder",
    "Pooling",
    "TrainingResult",
    "load_network",
    "simulate",
]

# Schemes import from this package, and `simulate` imports the schemes: so `simulate` is looked up at its first use.
_HOMES = {
    **dict.fromkeys(("Conv", "Gemm", "Layer", "Network", "Pooling"), "networks.graph"),
    "NetworkBuilder": "networks.builder",
    "TrainingResult": "result",
    "load_network": "named_network",
    "simulate": "driver",
}

__getattr__ = names_on_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
