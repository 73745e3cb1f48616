"""Coefficients of the convolutional perfectly matched layers (Komatitsch and Martin 2007, equations 25 and 26)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

POINTS = 10  # of a layer
_REFLECTION = 0.001
_POWER = 2.0


def coefficients(n: int, spacing: float, step: float, speed: float, frequency: float) -> NDArray[np.float64]:
    """Return a, b and kappa at whole points, then at half points: (6, n).

    Parameters
    ----------
    n, spacing : points along the direction, m
    step, speed, frequency : time step in s, fastest wave in m/s, dominant frequency in Hz
    """
    thickness = POINTS * spacing
    damping = -(_POWER + 1) * speed * np.log(_REFLECTION) / (2 * thickness)
    rows = []
    for half in (0.0, 0.5):
        position = spacing * (np.arange(n) + half)
        depth = np.maximum(thickness - position, position - ((n - 1) * spacing - thickness)) / thickness
        inside = depth >= 0
        depth = np.where(inside, depth, 0.0)
        d = damping * depth**_POWER
        alpha = np.where(inside, np.maximum(np.pi * frequency * (1 - depth), 0.0), 0.0)
        b = np.exp(-(d + alpha) * step)
        a = np.where(d > 1e-6, d * (b - 1) / np.where(d > 1e-6, d + alpha, 1.0), 0.0)
        rows += [a, b, np.ones(n)]
    return np.array(rows)
