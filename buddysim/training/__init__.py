"""Networks in training: layer graphs, a network zoo, layer times, memory and timelines.

``from buddysim.training import load_network, simulate`` works; each module is imported at the first use of its names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.training.driver import simulate
    from buddysim.training.load_network import load_network
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
_MODULES = {
    **dict.fromkeys(("Conv", "Gemm", "Layer", "Network", "Pooling"), "buddysim.training.networks.graph"),
    "NetworkBuilder": "buddysim.training.networks.builder",
    "TrainingResult": "buddysim.training.result",
    "load_network": "buddysim.training.load_network",
    "simulate": "buddysim.training.driver",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
