"""Searches for launch parameters (CSWAP, Alg. 1, Sec. V-D): Bayesian optimisation, random, expert, the whole grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buddysim.gpu_codecs import BLOCKS, GRIDS
from buddysim.gpu_codecs.opencl_device import LaunchShape
from buddysim.gpu_codecs.regressors import sklearn

#: Cost of a launch, for example in milliseconds.
Objective = Callable[[LaunchShape], float]

#: Random points, and the following steps of Bayesian optimisation (Sec. IV-D).
FIRST, STEPS = 10, 25
#: Launch that an expert selects (Sec. V-D): a work-group for each of a V100's 80 SMs, with a warp for each scheduler.
EXPERT = LaunchShape(80, 128)


@dataclass(frozen=True)
class LaunchSearchResult:
    """Best launch of a search, its cost, and the number of evaluations."""

    launch: LaunchShape
    cost: float
    evaluations: int


@cache
def space() -> tuple[LaunchShape, ...]:
    """Return every launch."""
    return tuple(LaunchShape(grid, block) for block in BLOCKS for grid in range(GRIDS[0], GRIDS[1] + 1))


def expert(objective: Objective) -> LaunchSearchResult:
    """Return the launch of the expert's rule."""
    return LaunchSearchResult(EXPERT, objective(EXPERT), 1)


def random(objective: Objective, seed: int, tries: int = 1) -> LaunchSearchResult:
    """Return the best of `tries` random launches; the paper takes one."""
    rng = np.random.default_rng(seed)
    return _best({launch: objective(launch) for launch in _random_launches(rng, tries)})


def whole_grid(objective: Objective) -> LaunchSearchResult:
    """Return the best of all launches."""
    return _best({launch: objective(launch) for launch in space()})


def bayesian(objective: Objective, seed: int) -> LaunchSearchResult:
    """Search by Bayesian optimisation with a Gaussian process over log(grid) and block; maximum expected improvement.

    The process's kernel is fixed (Matern, 0.2 of the grids' range): with so few points, fitting it takes time without
    better results.

    Parameters
    ----------
    seed : seed of the random points

    Raises
    ------
    BuddysimError
        if scikit-learn is not installed
    """
    gaussian, kernels = sklearn("gaussian_process"), sklearn("gaussian_process.kernels")
    rng = np.random.default_rng(seed)
    costs_by_launch = {launch: objective(launch) for launch in _random_launches(rng, FIRST)}
    candidates = _candidates()
    everywhere = _features(candidates)
    for _ in range(STEPS):
        kernel = kernels.Matern(length_scale=(0.2, 1.0), nu=2.5)
        process = gaussian.GaussianProcessRegressor(kernel, alpha=1e-4, optimizer=None, normalize_y=True)
        costs = np.log([costs_by_launch[launch] for launch in costs_by_launch])
        process.fit(_features(tuple(costs_by_launch)), costs)
        mean, deviation = process.predict(everywhere, return_std=True)
        gain = _expected_improvement(mean, deviation, float(costs.min()))
        for number in np.argsort(-gain, kind="stable"):
            launch = candidates[int(number)]
            if launch not in costs_by_launch:
                costs_by_launch[launch] = objective(launch)
                break
    return _best(costs_by_launch)


@cache
def _candidates() -> tuple[LaunchShape, ...]:
    """Return the candidate launches of a step: grids at most 2 % apart."""
    ends = GRIDS[1] / GRIDS[0]
    grids = sorted({round(GRIDS[0] * ends ** (number / 400)) for number in range(401)})
    return tuple(LaunchShape(grid, block) for block in BLOCKS for grid in grids)


def _random_launches(rng: np.random.Generator, count: int) -> list[LaunchShape]:
    return [space()[int(number)] for number in rng.choice(len(space()), count, replace=False)]


def _best(costs: dict[LaunchShape, float]) -> LaunchSearchResult:
    launch = min(costs, key=lambda one: (costs[one], one.block, one.grid))
    return LaunchSearchResult(launch, costs[launch], len(costs))


def _features(launches: tuple[LaunchShape, ...]) -> NDArray[np.float64]:
    """Return the launches as feature columns, each 0 to 1."""
    log_max_grid = math.log(GRIDS[1])
    return np.array(
        [[math.log(launch.grid) / log_max_grid, BLOCKS.index(launch.block)] for launch in launches], dtype=float
    )


def _expected_improvement(mean: Any, deviation: Any, best: float) -> NDArray[np.float64]:
    spread = np.maximum(deviation, 1e-12)
    ahead = (best - mean) / spread
    density = np.exp(-0.5 * ahead**2) / math.sqrt(2 * math.pi)
    below = np.array([0.5 * (1 + math.erf(value / math.sqrt(2))) for value in ahead])
    improvement: NDArray[np.float64] = spread * (ahead * below + density)
    return improvement
