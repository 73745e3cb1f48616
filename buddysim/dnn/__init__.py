"""Networks in training: graph, zoo, layer times, memory and timeline.

``from buddysim.dnn import Network, simulate``: what the names stand for is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.dnn.builder import NetworkBuilder
    from buddysim.dnn.graph import Conv, Gemm, Layer, Network, Pool
    from buddysim.dnn.result import Result
    from buddysim.schemes.simulate import simulate

__all__ = ["Conv", "Gemm", "Layer", "Network", "NetworkBuilder", "Pool", "Result", "simulate"]

# Schemes build on this package, so `simulate` is looked up when it is asked for and not before.
_MODULES = {
    **dict.fromkeys(("Conv", "Gemm", "Layer", "Network", "Pool"), "buddysim.dnn.graph"),
    "NetworkBuilder": "buddysim.dnn.builder",
    "Result": "buddysim.dnn.result",
    "simulate": "buddysim.schemes.simulate",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
