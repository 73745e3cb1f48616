"""Time of simulating one iteration of VGG-416 under each scheme, with the network and the cost model loaded."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measurement import Measurement, timed
from buddysim.training import schemes
from buddysim.training.cost import CostModel
from buddysim.training.driver import simulate_outcome
from buddysim.training.named_network import load_network

BATCH = 32
MACHINE = "titan-x"
REPEATS = 3
REQUIRED_S = 1.0


def measure(folder: Path, quick: bool) -> list[Measurement]:
    """Measure seconds of one core for every scheme; the quick figures are of VGG-116."""
    name = "vgg116" if quick else "vgg416"
    network, cost = load_network(name), CostModel.load(MACHINE)
    rows = []
    for scheme in schemes.runnable_schemes():
        seconds = []
        for _ in range(REPEATS):
            _, time = timed(lambda: simulate_outcome(network, BATCH, MACHINE, scheme, cost=cost))  # noqa: B023
            seconds.append(time.core_s)
        rows.append(
            Measurement.of_repetitions(
                f"train {name}, {scheme}", "s of one core", seconds, required=REQUIRED_S, smaller_is_better=True
            )
        )
    return rows
