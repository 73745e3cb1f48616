"""The boundary layer's wind tendencies agree with those of the Taylor-Green vortex."""

from __future__ import annotations

import numpy as np
import pytest

from buddysim.workloads.device import Device
from buddysim.workloads.palm import BoundaryLayer, PalmProblem
from tests.capture.opencl.running import needs_opencl

VISCOSITY = 20.0  # m2/s
SPACING = 50.0  # m, the program's
LAYER = 16  # far from ground and top


def largest_error(n: int) -> float:
    """Return the errors of the tendencies of u and v, relative to the largest advection, on n x n cells."""
    solver = BoundaryLayer(PalmProblem(n, n, 32, 1, 1))
    device = Device(solver)
    wave = 2 * np.pi / (n * SPACING)
    face, centre = np.arange(-3, n + 3) * SPACING * wave, (np.arange(-3, n + 3) + 0.5) * SPACING * wave

    def field(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.repeat((x[:, None] * y[None, :])[:, :, None], 34, axis=2)

    device.write("u", field(np.sin(face), np.cos(centre)))
    device.write("v", -field(np.cos(centre), np.sin(face)))
    device.fill("km", VISCOSITY)
    errors = []
    for name, x, y, sign in (("u", face, centre, 1), ("v", centre, face, -1)):
        more = ("usws",) if name == "u" else ()
        device.launch(f"tendency_{name}", (32, n, n), (32, 4, 1), "u", "v", "w", "km", "tend", *more)
        tendency = device.read("tend").reshape(n + 6, n + 6, 34)[3:-3, 3:-3, LAYER]
        x, y = x[3:-3, None], y[None, 3:-3]
        along, across = (x, y) if name == "u" else (y, x)
        advection = 0.5 * wave * np.sin(2 * along) + 0 * across
        diffusion = -2 * VISCOSITY * wave**2 * sign * np.sin(along) * np.cos(across)
        errors.append(np.abs(tendency - (diffusion - advection)).max() / (0.5 * wave))
    return max(errors)


def test_tendencies_are_of_second_order() -> None:
    pytest.importorskip("pyopencl")
    needs_opencl()
    coarse, fine = largest_error(16), largest_error(32)
    assert fine < 0.02
    assert coarse / fine > 3.5
