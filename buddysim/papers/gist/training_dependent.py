"""Values that depend on the paper's own trainings, shown with buddysim's: sparsities over time, usable formats."""

from __future__ import annotations

from buddysim.gist.csr_rows import rows_bytes
from buddysim.papers.cdma.density import about_the_training, measurement, shown_maps
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.cached_results import SavedResults


def ssdc_ratios() -> list[tuple[int, float]]:
    """Return iteration and SSDC ratio, in single precision, of all ReLU and pooled outputs of the feature layers."""
    activations = measurement()
    numbers = [n for n in shown_maps() if activations.feature_maps[n].part == "features"]
    points = []
    for point in activations.points:
        raw = stored = 0
        for n in numbers:
            statistics = point.statistics(n)
            if statistics is not None:
                elements = 1_000_000  # the same for each feature map: ratios do not depend on a network's sizes
                raw += 4 * elements
                nonzero = round(statistics.density * elements)
                stored += rows_bytes(elements, nonzero, 4 * nonzero)
        points.append((point.iteration, raw / stored))
    return points


@simulates("ssdc-over-time", "ssdc-first")
def over_time(training: SavedResults, id: str) -> SimulatedValue:
    ratios = ssdc_ratios()
    above = next((iteration for iteration, ratio in ratios if ratio > 1), None)
    note = f"{about_the_training()}: {ratios[0][1]:.2f} at first, {ratios[-1][1]:.2f} at the end"
    if id == "ssdc-first":
        return SimulatedValue(None if above is None else float(above), note=note)
    return SimulatedValue(
        "more than 1 throughout" if above == ratios[0][0] else "more than 1, but for the first minibatches"
    )


@simulates("sparsity-vgg16")
def sparsity(training: SavedResults) -> SimulatedValue:
    relus = [n for n in shown_maps() if measurement().feature_maps[n].kind == "relu"]
    return SimulatedValue(100 * (1 - float(measurement().densities[:, relus].min())), note=about_the_training())


@simulates("epoch-minibatches")
def epoch_minibatches(training: SavedResults) -> SimulatedValue:
    return SimulatedValue(1_281_167 / 64 / 1000)
