"""The machines of the cDMA paper (Rhu et al., HPCA 2018)."""

from __future__ import annotations

from buddysim.machine.training import TrainingMachine
from buddysim.papers.simulated_values import Measured, measures
from buddysim.sweep.saved import SavedResults


@measures("titan-xp-bandwidth")
def bandwidth(training: SavedResults) -> Measured:
    return Measured(TrainingMachine.load("titan-xp").dram_bytes_per_s / 1e9)


@measures("shared-link")
def shared_link(training: SavedResults) -> Measured:
    link = "pcie3-shared"
    rates = TrainingMachine.load("titan-x").links[link]
    return Measured(rates.offload_bytes_per_s / 1e9, note=f"link `{link}`")
