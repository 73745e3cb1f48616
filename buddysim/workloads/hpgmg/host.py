"""The problem on the host: coefficients, right-hand side, and a reference model of the operator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Grid = NDArray[np.float64]

GHOSTS = 2
_BOTTOM_RESIDUAL = 1e-3  # relative to the first one: MG_DEFAULT_BOTTOM_NORM
_NEXT_TO_WALL = np.array([[-77.0, 43.0, -17.0, 3.0], [-505.0, 335.0, -145.0, 27.0]]) / 12.0


def _centres(n: int, extra: int) -> Grid:
    return (np.arange(-extra, n + extra) + 0.5) / n


def coefficients(n: int) -> dict[str, Grid]:
    """Return beta on the lower face of each cell along x, y and z, with two layers of ghosts: (n + 4,) * 3, z first.

    beta = 1 + sin(2 pi x) sin(2 pi y) sin(2 pi z) / 4, the mean over a face to fourth order (problem.fv.c).
    """
    h = 1.0 / n
    coefficients_of = {}
    for name, axis in (("beta_i", 2), ("beta_j", 1), ("beta_k", 0)):
        centres = [_centres(n, GHOSTS) - (0.5 * h if a == axis else 0.0) for a in range(3)]
        z, y, x = np.meshgrid(*centres, indexing="ij")
        wave = 0.25 * np.sin(2 * np.pi * x) * np.sin(2 * np.pi * y) * np.sin(2 * np.pi * z)
        coefficients_of[name] = 1.0 + wave * (1.0 - 2 * (2 * np.pi) ** 2 * h * h / 24.0)
    return coefficients_of


def right_hand_side(n: int) -> Grid:
    """Return sin^7(2 pi x) sin^7(2 pi y) sin^7(2 pi z), cell means to fourth order: (n, n, n)."""
    a, p, h = 2 * np.pi, 7, 1.0 / n
    z, y, x = np.meshgrid(*[_centres(n, 0)] * 3, indexing="ij")
    sines = [np.sin(a * axis_positions) for axis_positions in (x, y, z)]
    cosines = [np.cos(a * axis_positions) for axis_positions in (x, y, z)]
    product = sines[0] ** p * sines[1] ** p * sines[2] ** p
    second = np.zeros_like(product)
    for axis in range(3):
        others = [sines[other] ** p for other in range(3) if other != axis]
        second += -a * a * p * product
        second += a * a * p * (p - 1) * sines[axis] ** (p - 2) * cosines[axis] ** 2 * others[0] * others[1]
    mean: Grid = product + h * h / 24.0 * second
    return mean


def with_ghosts(u: Grid) -> Grid:
    """Return u with two layers of ghosts beyond each wall, for u = 0 on the walls: (n + 4, n + 4, n + 4)."""
    for axis in range(3):
        u = np.moveaxis(u, axis, -1)
        low = u[..., :4] @ _NEXT_TO_WALL.T
        high = u[..., :-5:-1] @ _NEXT_TO_WALL.T
        u = np.concatenate([low[..., ::-1], u, high], -1)
        u = np.moveaxis(u, -1, axis)
    result: Grid = u
    return result


def apply_operator(u: Grid, beta: dict[str, Grid]) -> Grid:
    """Return -div(beta grad u) of cell means: (n, n, n)."""
    n = u.shape[-1]
    x = with_ghosts(u)

    def at(a: Grid, *shift: tuple[int, int]) -> Grid:
        starts = [GHOSTS] * 3
        for axis, by in shift:
            starts[axis] += by
        x0, x1, x2 = (slice(start, start + n) for start in starts)
        return a[x0, x1, x2]

    total = np.zeros_like(u)
    for name, s in (("beta_i", 2), ("beta_j", 1), ("beta_k", 0)):
        b = beta[name]
        near = 15.0 * (at(x, (s, -1)) - at(x)) - (at(x, (s, -2)) - at(x, (s, 1)))
        far = 15.0 * (at(x, (s, 1)) - at(x)) - (at(x, (s, 2)) - at(x, (s, -1)))
        total += at(b) * near + at(b, (s, 1)) * far
        for t in {0, 1, 2} - {s}:
            for face, other in ((0, -1), (1, 1)):
                slope = at(b, (s, face), (t, 1)) - at(b, (s, face), (t, -1))
                change = at(x, (s, other), (t, 1)) - at(x, (t, 1)) - at(x, (s, other), (t, -1)) + at(x, (t, -1))
                total += 0.25 * slope * change
    result: Grid = -(n**2) / 12.0 * total
    return result


def inverse_diagonal(n: int, beta: dict[str, Grid]) -> Grid:
    """Return the inverse of the operator's diagonal, with the ghost cells' contributions: (n, n, n)."""
    inside = (slice(GHOSTS, -GHOSTS),) * 3
    total = np.zeros((n, n, n))
    for name, axis in (("beta_i", 2), ("beta_j", 1), ("beta_k", 0)):
        own, next_to = np.full(n, -15.0), np.full(n, -15.0)  # of the lower face, and of the upper one
        own[0] += 15.0 * _NEXT_TO_WALL[0, 0] - _NEXT_TO_WALL[1, 0]
        next_to[0] += _NEXT_TO_WALL[0, 0]
        own[1] -= _NEXT_TO_WALL[0, 1]
        next_to[-1] += 15.0 * _NEXT_TO_WALL[0, 0] - _NEXT_TO_WALL[1, 0]
        own[-1] += _NEXT_TO_WALL[0, 0]
        next_to[-2] -= _NEXT_TO_WALL[0, 1]
        shape = [n if a == axis else 1 for a in range(3)]
        upper = list(inside)
        upper[axis] = slice(GHOSTS + 1, GHOSTS + 1 + n)
        total += own.reshape(shape) * beta[name][inside] + next_to.reshape(shape) * beta[name][tuple(upper)]
    inverse: Grid = 1.0 / (-(n**2) / 12.0 * total)
    return inverse


def solve(right: Grid, initial: Grid, beta: dict[str, Grid]) -> Grid:
    """Return the solution on a small grid by BiCGStab, as HPGMG's bottom solver computes it: (n, n, n)."""
    from scipy.sparse.linalg import LinearOperator, bicgstab  # takes longer to load than the rest of a command

    n = len(right)
    inverse = inverse_diagonal(n, beta).ravel()
    shape = (n**3, n**3)
    operator = LinearOperator(shape, lambda v: apply_operator(v.reshape(n, n, n), beta).ravel(), dtype=np.float64)
    scaling = LinearOperator(shape, lambda v: inverse * v, dtype=np.float64)
    flat, _ = bicgstab(operator, right.ravel(), initial.ravel(), rtol=_BOTTOM_RESIDUAL, atol=0.0, M=scaling)
    solution: Grid = np.asarray(flat, np.float64).reshape(n, n, n)
    return solution
