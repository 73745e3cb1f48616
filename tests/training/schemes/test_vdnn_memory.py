"""Memory of the vDNN paper's baseline without workspace equals sums over the graph (its GB are GiB)."""

from __future__ import annotations

import pytest

from buddysim.training.named_network import load_network
from buddysim.training.networks.network_bytes import baseline_network_bytes

GIB = 2**30


@pytest.mark.parametrize(
    ("name", "batch", "gib"), [("vgg19", 256, 23.0), ("vgg19", 128, 12.0), ("vgg19", 32, 3.8), ("vgg416", 32, 65.5)]
)
def test_network_wide_allocation_without_workspace(name: str, batch: int, gib: float) -> None:
    assert baseline_network_bytes(load_network(name), batch).total / GIB == pytest.approx(gib, abs=0.05)


def test_the_sum_by_hand_of_vgg19() -> None:
    """Return the bytes with ReLU in place: the image, CONV, pooling and FC outputs, and the final fractions."""
    convs = 2 * 64 * 224**2 + 2 * 128 * 112**2 + 4 * 256 * 56**2 + 4 * 512 * 28**2 + 4 * 512 * 14**2
    pools = 64 * 112**2 + 128 * 56**2 + 256 * 28**2 + 512 * 14**2 + 512 * 7**2
    maps = 4 * (3 * 224**2 + convs + pools + 4096 + 4096 + 1000 + 1000)
    footprint = baseline_network_bytes(load_network("vgg19"), 256)
    assert footprint.feature_maps == 256 * maps
    assert footprint.gradient_maps == 2 * 256 * 4 * 64 * 224**2
    assert footprint.weights == footprint.weight_gradients == 4 * 143_667_240
