"""The readable twin of `binarize`."""

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


def places(values: Sequence[float], windows: Windows) -> bytes:
    """The place of the largest element of each window; of equal ones the first, of NaNs the last."""
    found = []
    for first in range(0, len(values), windows.plane):
        for inside in _windows(windows):
            best = inside[0]
            for place, position in inside[1:]:
                value = values[first + position]
                if value > values[first + best[1]] or math.isnan(value):
                    best = place, position
            found.append(best[0])
    return _packed(found, 2)


def to_indices(code: bytes, planes: int, windows: Windows) -> list[int]:
    """Positions in the plane."""
    every = [dict(inside) for _ in range(planes) for inside in _windows(windows)]
    return [inside[code[n // 2] >> 4 * (n % 2) & 15] for n, inside in enumerate(every)]


def pool_backward(code: bytes, gradient: Sequence[float], windows: Windows) -> list[float]:
    """The gradient of the input, summed up in double precision."""
    planes = len(gradient) // windows.out_plane
    found = [0.0] * (planes * windows.plane)
    for n, position in enumerate(to_indices(code, planes, windows)):
        found[n // windows.out_plane * windows.plane + position] += gradient[n]
    return found


def _windows(windows: Windows) -> Iterator[list[tuple[int, int]]]:
    """Of each window the elements that lie inside the plane: place in the window, position in the plane."""
    for row in range(windows.out_height):
        for column in range(windows.out_width):
            inside = []
            for place in range(windows.kernel[0] * windows.kernel[1]):
                i, j = divmod(place, windows.kernel[1])
                h = row * windows.stride[0] - windows.pad[0] + i * windows.dilation[0]
                w = column * windows.stride[1] - windows.pad[1] + j * windows.dilation[1]
                if 0 <= h < windows.height and 0 <= w < windows.width:
                    inside.append((place, h * windows.width + w))
            yield inside


def _packed(numbers: Sequence[int], per_byte: int) -> bytes:
    """Numbers in bytes, from the lowest bits on."""
    width = 8 // per_byte
    pieces = [numbers[at : at + per_byte] for at in range(0, len(numbers), per_byte)]
    return bytes(sum(number << width * n for n, number in enumerate(piece)) for piece in pieces)
