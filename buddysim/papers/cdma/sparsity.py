"""Sparsity over a training, as the cDMA paper describes it, in buddysim's training."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np

from buddysim.papers.cdma.density import about_the_training, measurement
from buddysim.papers.simulated_values import SimulatedValue, simulates
from buddysim.sweep.cached_results import SavedResults


def maps_of(kind: str, part: str = "features") -> list[int]:
    """Return the indices of the feature maps that this kind of layer wrote."""
    return [n for n, info in enumerate(measurement().feature_maps) if info.kind == kind and info.part == part]


@simulates("first-conv")
def first_conv(training: SavedResults) -> SimulatedValue:
    densities = 100 * measurement().densities[:, maps_of("relu")[0]]
    return SimulatedValue((float(densities.min()), float(densities.max())), note=about_the_training())


@simulates("pool-denser")
def pool_denser(training: SavedResults) -> SimulatedValue:
    densities = measurement().densities
    pools = [n for n in maps_of("maxpool") if n and measurement().feature_maps[n - 1].kind == "relu"]
    denser = [float((densities[:, n] >= densities[:, n - 1]).mean()) for n in pools]
    denser_fraction = fmean(denser)
    return SimulatedValue(
        "denser" if denser_fraction > 0.95 else "not always denser",
        note=f"{len(pools)} pooling layers, at {100 * denser_fraction:.0f} % of the points",
    )


def network_density() -> Any:
    """Density of the feature layers' ReLU outputs together, weighted by size, for each point of the training."""
    maps = maps_of("relu")
    sizes = np.array([measurement().feature_maps[n].elements for n in maps], dtype=float)
    return measurement().densities[:, maps] @ sizes / sizes.sum()


@simulates("fall", "u-shape")
def over_training(training: SavedResults, id: str) -> SimulatedValue:
    density = network_density()
    iterations = [point.iteration for point in measurement().points]
    lowest = int(density.argmin())
    note = (
        f"{100 * density[0]:.1f} % at the start, {100 * density[lowest]:.1f} % at iteration {iterations[lowest]:,}, "
        f"{100 * density[-1]:.1f} % at {iterations[-1]:,}"
    )
    if id == "fall":
        return SimulatedValue("falls" if density[lowest] < density[0] else "does not fall", note=note)
    rises = lowest < len(density) - 1 and density[-1] > density[lowest]
    return SimulatedValue("rises slowly" if rises else "does not rise", note=note)


@simulates("deeper-sparser")
def deeper_sparser(training: SavedResults) -> SimulatedValue:
    from scipy import stats  # here, as other papers' values need none of it

    means = [measurement().mean_density(n) or 0.0 for n in maps_of("relu")]
    rank = float(stats.spearmanr(range(len(means)), means).statistic)
    shown = ", ".join(f"{100 * density:.0f}" for density in means)
    return SimulatedValue(
        "sparser" if rank < 0 else "denser", note=f"mean densities {shown} %; rank correlation {rank:.2f}"
    )


@simulates("fc-sparsest")
def fc_sparsest(training: SavedResults) -> SimulatedValue:
    features = [measurement().mean_density(n) or 0 for n in maps_of("relu")]
    classifier = [measurement().mean_density(n) or 0 for n in maps_of("relu", "classifier")]
    return SimulatedValue(
        "sparsest" if max(classifier) < min(features) else "not sparsest",
        note=f"density {', '.join(f'{100 * d:.0f}' for d in classifier)} % compared with {100 * min(features):.0f} % "
        "of the "
        f"sparsest CONV",
    )
