"""Simulated machines: typed descriptions, presets as TOML, quantities with units.

The names load on first use: a section of machine files needs no machine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.machine.model import Machine
    from buddysim.machine.training import TrainingMachine
    from buddysim.machine.units import Bandwidth, Frequency, Time

__all__ = ["Bandwidth", "Frequency", "Machine", "Time", "TrainingMachine"]

_HOMES = {
    "Machine": "model",
    "TrainingMachine": "training",
    **dict.fromkeys(("Bandwidth", "Frequency", "Time"), "units"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
