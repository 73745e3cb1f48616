"""Replay of a trace on a machine under a scheme.

The names load on first use: what asks for the schemes alone does not load the driver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.replay.result import ReplayResult
    from buddysim.replay.scheme_results import SchemeResults, simulate_schemes
    from buddysim.replay.simulation import simulate

__all__ = ["ReplayResult", "SchemeResults", "simulate", "simulate_schemes"]

_HOMES = {
    "SchemeResults": "buddysim.replay.scheme_results",
    "ReplayResult": "buddysim.replay.result",
    "simulate_schemes": "buddysim.replay.scheme_results",
    "simulate": "buddysim.replay.simulation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
