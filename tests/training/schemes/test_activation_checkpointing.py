"""Where a described network can be cut into parts that are computed again."""

from __future__ import annotations

from buddysim.training.named_network import load_network
from buddysim.training.schemes.activation_checkpointing import split_points


def test_a_chain_is_cut_everywhere_but_before_a_layer_that_runs_in_place() -> None:
    network = load_network("alexnet")
    parts = split_points(network)
    starts = [layer.index for layer in network.layers[1:] if not layer.in_place]
    assert [first for first, _ in parts] == starts
    assert [last for _, last in parts] == [*(first - 1 for first in starts[1:]), len(network.layers) - 1]
    assert any(first < last for first, last in parts)
