"""Replay of a trace on a machine under a scheme.

The names load on first use: what asks for the schemes alone does not load the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.first_use import names_on_first_use

if TYPE_CHECKING:
    from buddysim.replay.result import ReplayResult
    from buddysim.replay.scheme_results import SchemeResults, simulate_schemes
    from buddysim.replay.simulation import simulate

__all__ = ["ReplayResult", "SchemeResults", "simulate", "simulate_schemes"]

_HOMES = {
    "SchemeResults": "scheme_results",
    "ReplayResult": "result",
    "simulate_schemes": "scheme_results",
    "simulate": "simulation",
}

__getattr__ = names_on_first_use(__name__, _HOMES)
