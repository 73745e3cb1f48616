"""Waves of a point force in an unbounded elastic solid: Stokes' solution (Aki and Richards, equation 4.23)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def velocities(
    offset: NDArray[np.float64],
    direction: int,
    derivative: Callable[[NDArray[np.floating[Any]]], NDArray[np.float64]],
    times: NDArray[np.floating[Any]],
    rho: float,
    p_speed: float,
    s_speed: float,
) -> NDArray[np.float64]:
    """Return the velocity (times, 3) at an offset from a force along a coordinate axis.

    Parameters
    ----------
    offset : (3,) receiver less source, m
    direction : 0, 1 or 2: coordinate of the force
    derivative : of the force by time, N/s, at times in s
    times : s
    rho, p_speed, s_speed : kg/m3, m/s, m/s
    """
    distance = float(np.linalg.norm(offset))
    gamma = offset / distance
    unit = np.eye(3)[direction]
    lags, weights = np.polynomial.legendre.leggauss(60)
    first, last = distance / p_speed, distance / s_speed
    lags = 0.5 * (last - first) * lags + 0.5 * (last + first)
    weights = 0.5 * (last - first) * weights
    near = (derivative(times[:, None] - lags) * lags) @ weights
    p_wave, s_wave = derivative(times - first), derivative(times - last)
    along = gamma[direction] * gamma
    total = (
        np.outer(near, 3 * along - unit) / distance**3
        + np.outer(p_wave, along) / (p_speed**2 * distance)
        - np.outer(s_wave, along - unit) / (s_speed**2 * distance)
    )
    return total / (4 * np.pi * rho)
