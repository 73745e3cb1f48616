"""Simulated machines: typed descriptions, presets as TOML, quantities with units."""

from buddysim.machine.model import Machine
from buddysim.machine.training import TrainingMachine
from buddysim.machine.units import Bandwidth, Frequency, Time

__all__ = ["Bandwidth", "Frequency", "Machine", "Time", "TrainingMachine"]
