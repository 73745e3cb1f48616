"""A drop falls into a square basin: the shallow-water equations by Lax-Friedrichs steps, with numpy.

python shallow_water.py [CELLS ON A SIDE] [STEPS]
"""

import sys

import numpy as np

cells = int(sys.argv[1]) if len(sys.argv) > 1 else 256
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 400
gravity, spacing = 9.81, 1.0 / cells
step = 0.2 * spacing / np.sqrt(gravity * 1.5)

x, y = np.meshgrid(np.linspace(0, 1, cells), np.linspace(0, 1, cells))
height = 1 + 0.5 * np.exp(-((x - 0.4) ** 2 + (y - 0.3) ** 2) / 0.002)
east, north = np.zeros_like(height), np.zeros_like(height)  # momentum
del x, y


def around(field, sign_x=1, sign_y=1):
    """The four neighbours of every cell; walls reflect."""
    padded = np.pad(field, 1, mode="edge")
    west, to_east, south, to_north = padded[1:-1, :-2], padded[1:-1, 2:], padded[:-2, 1:-1], padded[2:, 1:-1]
    west[:, 0] *= sign_x
    to_east[:, -1] *= sign_x
    south[0] *= sign_y
    to_north[-1] *= sign_y
    return west, to_east, south, to_north


def advance(field, flow_x, flow_y, signs=(1, 1)):
    """One Lax-Friedrichs step of a conserved quantity with its flows."""
    west, to_east, south, to_north = around(field, *signs)
    mean = 0.25 * (west + to_east + south + to_north)
    flow_west, flow_east, _, _ = around(flow_x, -signs[0], signs[1])
    _, _, flow_south, flow_north = around(flow_y, signs[0], -signs[1])
    return mean - step / (2 * spacing) * (flow_east - flow_west + flow_north - flow_south)


for _ in range(steps):
    pressure = 0.5 * gravity * height**2
    mixed = east * north / height
    height[:], east[:], north[:] = (
        advance(height, east, north),
        advance(east, east**2 / height + pressure, mixed, (-1, 1)),
        advance(north, mixed, north**2 / height + pressure, (1, -1)),
    )

print(f"volume {height.mean():.9f}, highest {height.max():.6f}, lowest {height.min():.6f}")
