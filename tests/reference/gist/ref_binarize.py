"""Reference model of `binarize`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from buddysim.gist.windows import Windows


def encode(values: Sequence[float]) -> bytes:
    """A bit for each element: whether its gradient passes."""
    return _packed([int(not value <= 0) for value in values], 8)


def backward(mask: bytes, gradient: Sequence[float]) -> list[float]:
    """The gradient of the input."""
    return [dy if mask[n // 8] >> n % 8 & 1 else 0.0 for n, dy in enumerate(gradient)]


def max_positions(values: Sequence[float], windows: Windows) -> bytes:
    """Position of the largest element of each window: of equal elements the first, of NaNs the last."""
    positions = []
    for first in range(0, len(values), windows.plane):
        for inside in _windows(windows):
            best = inside[0]
            for position, index in inside[1:]:
                value = values[first + index]
                if value > values[first + best[1]] or math.isnan(value):
                    best = position, index
            positions.append(best[0])
    return _packed(positions, 2)


def indices_from_positions(payload: bytes, planes: int, windows: Windows) -> list[int]:
    """Indices in the plane."""
    every = [dict(inside) for _ in range(planes) for inside in _windows(windows)]
    return [inside[payload[n // 2] >> 4 * (n % 2) & 15] for n, inside in enumerate(every)]


def pool_backward(payload: bytes, gradient: Sequence[float], windows: Windows) -> list[float]:
    """The gradient of the input, summed up in double precision."""
    planes = len(gradient) // windows.out_plane
    input_gradient = [0.0] * (planes * windows.plane)
    for n, index in enumerate(indices_from_positions(payload, planes, windows)):
        input_gradient[n // windows.out_plane * windows.plane + index] += gradient[n]
    return input_gradient


def _windows(windows: Windows) -> Iterator[list[tuple[int, int]]]:
    """Return for each window its elements inside the plane: index in the window, index in the plane."""
    for row in range(windows.out_height):
        for column in range(windows.out_width):
            inside = []
            for position in range(windows.kernel[0] * windows.kernel[1]):
                i, j = divmod(position, windows.kernel[1])
                h = row * windows.stride[0] - windows.pad[0] + i * windows.dilation[0]
                w = column * windows.stride[1] - windows.pad[1] + j * windows.dilation[1]
                if 0 <= h < windows.height and 0 <= w < windows.width:
                    inside.append((position, h * windows.width + w))
            yield inside


def _packed(numbers: Sequence[int], per_byte: int) -> bytes:
    """Numbers in bytes, from the lowest bits on."""
    width = 8 // per_byte
    groups = [numbers[at : at + per_byte] for at in range(0, len(numbers), per_byte)]
    return bytes(sum(number << width * n for n, number in enumerate(group)) for group in groups)
