"""Searches for launch parameters on costs with a known optimum."""

from __future__ import annotations

import pytest

from buddysim.gpu_codecs.launch_search import EXPERT, FIRST, STEPS, bayesian, expert, random, whole_grid
from buddysim.gpu_codecs.opencl_device import LaunchShape


def bowl(launch: LaunchShape) -> float:
    """Return a cost with its minimum at grid 200, as in the paper's Fig. 5; larger work-groups cost slightly more."""
    return 1000 / launch.grid + launch.grid / 40 + launch.block / 64


def test_whole_grid_returns_the_minimum() -> None:
    result = whole_grid(bowl)
    assert (result.launch, result.evaluations) == (LaunchShape(200, 64), 8192)


def test_expert_and_random_launches() -> None:
    assert expert(bowl).launch == EXPERT
    assert expert(bowl).evaluations == 1
    assert random(bowl, 3) == random(bowl, 3)
    assert random(bowl, 3, tries=50).cost <= random(bowl, 3).cost


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_bayesian_optimisation_is_near_the_minimum(seed: int) -> None:
    pytest.importorskip("sklearn")
    result = bayesian(bowl, seed)
    assert result.evaluations == FIRST + STEPS
    assert result.cost <= 1.15 * whole_grid(bowl).cost
    assert result.cost < random(bowl, seed, tries=FIRST).cost
    assert bayesian(bowl, seed) == result
