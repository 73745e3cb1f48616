"""Simulated machines: typed descriptions, presets as TOML, quantities with units.

The names load on first use: a section of machine files needs no machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buddysim.base.first_use import names_on_first_use

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

__getattr__ = names_on_first_use(__name__, _HOMES)
