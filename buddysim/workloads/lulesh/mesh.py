"""The mesh of the Sedov problem: nodes, connections, boundary conditions, regions (lulesh-init.cc)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int32]

REGIONS = 11
_LENGTH = 1.125
_COST = 1
# Bits of elemBC.
_XI_M_SYMM, _XI_P_FREE = 0x00001, 0x00010
_ETA_M_SYMM, _ETA_P_FREE = 0x00040, 0x00400
_ZETA_M_SYMM, _ZETA_P_FREE = 0x01000, 0x10000
# Length of a run of elements of one region: upper bound of the draw in per mille, least length, spread.
_RUNS = ((773, 1, 15), (937, 16, 16), (970, 32, 32), (974, 64, 64), (978, 128, 128), (981, 256, 256), (1000, 512, 1537))


def coordinates(edge: int) -> dict[str, NDArray[np.float64]]:
    """Return the coordinates of all nodes, with x fastest."""
    axis = _LENGTH * np.arange(edge + 1) / edge
    z, y, x = np.meshgrid(axis, axis, axis, indexing="ij")
    return {"x": x.ravel(), "y": y.ravel(), "z": z.ravel()}


def node_list(edge: int) -> Integers:
    """Return the eight nodes of each element."""
    nodes = edge + 1
    z, y, x = np.meshgrid(np.arange(edge), np.arange(edge), np.arange(edge), indexing="ij")
    first = (z * nodes * nodes + y * nodes + x).ravel()
    layer = np.array([0, 1, nodes + 1, nodes])
    corners: Integers = (first[:, None] + np.r_[layer, layer + nodes * nodes]).astype(np.int32)
    return corners


def corner_lists(nodelist: Integers, nodes: int) -> tuple[Integers, Integers]:
    """Return the first corner index of each node, and the corners (8 element + corner) by node in element order."""
    flat = nodelist.ravel()
    starts = np.r_[0, np.cumsum(np.bincount(flat, minlength=nodes))]
    return starts.astype(np.int32), np.argsort(flat, kind="stable").astype(np.int32)


def symmetry_planes(edge: int) -> dict[str, Integers]:
    """Return the nodes of the planes x = 0, y = 0 and z = 0."""
    nodes = edge + 1
    slow, fast = (grid.ravel() for grid in np.meshgrid(np.arange(nodes), np.arange(nodes), indexing="ij"))
    planes = {
        "symmX": slow * nodes * nodes + fast * nodes,
        "symmY": slow * nodes * nodes + fast,
        "symmZ": slow * nodes + fast,
    }
    return {name: plane.astype(np.int32) for name, plane in planes.items()}


def neighbours(edge: int) -> dict[str, Integers]:
    """Return the neighbours of each element along xi, eta and zeta; the element itself at the ends of the array."""
    count = edge**3
    own = np.arange(count)
    neighbours = {}
    for name, stride in (("lxi", 1), ("leta", edge), ("lzeta", edge * edge)):
        neighbours[f"{name}m"] = np.where(own >= stride, own - stride, own).astype(np.int32)
        neighbours[f"{name}p"] = np.where(own < count - stride, own + stride, own).astype(np.int32)
    return neighbours


def boundary_conditions(edge: int) -> Integers:
    """Return the faces of each element that lie on symmetry planes or are free, as bits of elemBC."""
    bits = np.zeros((edge, edge, edge), np.int32)
    bits[0] |= _ZETA_M_SYMM
    bits[-1] |= _ZETA_P_FREE
    bits[:, 0] |= _ETA_M_SYMM
    bits[:, -1] |= _ETA_P_FREE
    bits[:, :, 0] |= _XI_M_SYMM
    bits[:, :, -1] |= _XI_P_FREE
    return bits.ravel()


def region_numbers(elements: int) -> Integers:
    """Return the region of each element, from 1: runs of random length in random regions, large regions more often."""
    numbers = np.empty(elements, np.int32)
    ends = np.cumsum(np.arange(1, REGIONS + 1))
    draw = _c_random()
    at, last = 0, -1
    while at < elements:
        region = last
        while region == last:
            region = int(np.searchsorted(ends, next(draw) % ends[-1], side="right")) + 1
        size = next(draw) % 1000
        least, spread = next((least, spread) for below, least, spread in _RUNS if size < below)
        run = next(draw) % spread + least
        numbers[at : at + run] = region
        at, last = at + run, region
    return numbers


def repetitions(regions: Integers) -> Integers:
    """Return how often LULESH evaluates the equation of state of an element, by region."""
    often = REGIONS - (REGIONS + 15) // 20
    by_region = [1 if r < REGIONS // 2 else 1 + _COST if r < often else 10 * (1 + _COST) for r in range(REGIONS)]
    return np.array(by_region, np.int32)[regions - 1]


def _c_random() -> Iterator[int]:
    """Yield ``rand()`` of the GNU C library after ``srand(0)``: additive feedback x[i] = x[i - 3] + x[i - 31]."""
    state = [1]  # a seed of 0 counts as 1
    for _ in range(30):
        state.append(16807 * state[-1] % 2147483647)
    state += state[:3]
    for i in range(34, 344):
        state.append((state[i - 31] + state[i - 3]) & 0xFFFFFFFF)
    history = state[-31:]
    while True:
        value = (history[0] + history[-3]) & 0xFFFFFFFF
        history = [*history[1:], value]
        yield value >> 1
