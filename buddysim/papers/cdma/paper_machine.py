"""The machines of the cDMA paper (Rhu et al., HPCA 2018)."""

from __future__ import annotations

from buddysim.machine.training import TrainingMachine
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.cached_results import SavedResults


@simulates("titan-xp-bandwidth")
def bandwidth(training: SavedResults) -> SimulatedValue:
    return SimulatedValue(TrainingMachine.load("titan-xp").dram_bytes_per_s / 1e9)


@simulates("shared-link")
def shared_link(training: SavedResults) -> SimulatedValue:
    link = "pcie3-shared"
    rates = TrainingMachine.load("titan-x").links[link]
    return SimulatedValue(rates.offload_bytes_per_s / 1e9, note=f"link `{link}`")
