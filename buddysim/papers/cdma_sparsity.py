"""Our own training beside the cDMA paper's numbers on sparsity over training."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from buddysim.figures.runs import Runs
from buddysim.papers.numbers import Ours, measures
from buddysim.papers.told import mean

if TYPE_CHECKING:
    from buddysim.formats.maps import Activations


@cache
def observed() -> Activations:
    """The measurement that ships with the package."""
    from buddysim.formats.maps import load

    return load()


def maps_of(kind: str, part: str = "features") -> list[int]:
    """Numbers of the maps that a kind of layer wrote."""
    return [n for n, info in enumerate(observed().maps) if info.kind == kind and info.part == part]


@measures("first-conv")
def first_conv(runs: Runs) -> Ours:
    densities = 100 * observed().densities[:, maps_of("relu")[0]]
    return Ours((float(densities.min()), float(densities.max())), said=about_the_training())


def about_the_training() -> str:
    made, last = observed().provenance, observed().points[-1]
    return f"{made.get('network', 'a network')} on {made.get('data', 'data')}, {last.iteration:,} iterations"


@measures("pool-denser")
def pool_denser(runs: Runs) -> Ours:
    densities = observed().densities
    pools = [n for n in maps_of("maxpool") if n and observed().maps[n - 1].kind == "relu"]
    denser = [float((densities[:, n] >= densities[:, n - 1]).mean()) for n in pools]
    share = mean(denser)
    return Ours(
        "denser" if share > 0.95 else "not always denser",
        said=f"{len(pools)} pooling layers, at {100 * share:.0f} % of the points",
    )


def network_density() -> Any:
    """Density of all ReLU maps of the features, weighted by size, by point."""
    maps = maps_of("relu")
    sizes = np.array([observed().maps[n].elements for n in maps], dtype=float)
    return observed().densities[:, maps] @ sizes / sizes.sum()


@measures("fall", "u-shape")
def over_training(runs: Runs, id: str) -> Ours:
    density = network_density()
    iterations = [point.iteration for point in observed().points]
    lowest = int(density.argmin())
    said = (
        f"{100 * density[0]:.1f} % at the start, {100 * density[lowest]:.1f} % at iteration {iterations[lowest]:,}, "
        f"{100 * density[-1]:.1f} % at {iterations[-1]:,}"
    )
    if id == "fall":
        return Ours("falls" if density[lowest] < density[0] else "does not fall", said=said)
    rises = lowest < len(density) - 1 and density[-1] > density[lowest]
    return Ours("rises slowly" if rises else "does not rise", said=said)


@measures("deeper-sparser")
def deeper_sparser(runs: Runs) -> Ours:
    means = [observed().mean_density(n) or 0.0 for n in maps_of("relu")]
    ranks = np.argsort(np.argsort(means))
    rank = float(np.corrcoef(np.arange(len(means)), ranks)[0, 1])  # Spearman's
    shown = ", ".join(f"{100 * density:.0f}" for density in means)
    return Ours("sparser" if rank < 0 else "denser", said=f"mean densities {shown} %; rank correlation {rank:.2f}")


@measures("fc-sparsest")
def fc_sparsest(runs: Runs) -> Ours:
    features = [observed().mean_density(n) or 0 for n in maps_of("relu")]
    classifier = [observed().mean_density(n) or 0 for n in maps_of("relu", "classifier")]
    return Ours(
        "sparsest" if max(classifier) < min(features) else "not sparsest",
        said=f"density {', '.join(f'{100 * d:.0f}' for d in classifier)} % against {100 * min(features):.0f} % of the "
        f"sparsest CONV",
    )
