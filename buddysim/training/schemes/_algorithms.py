"""CONV algorithms for a whole network: the fastest, or those without workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from buddysim.base.errors import BuddysimError

if TYPE_CHECKING:
    from buddysim.training.cost import ConvAlgorithm, CostModel
    from buddysim.training.networks.graph import Layer, Network

ConvPass = Literal["forward", "backward_data", "backward_filter"]
PASSES: tuple[ConvPass, ...] = ("forward", "backward_data", "backward_filter")

Algorithms = Mapping[int, Mapping[str, "ConvAlgorithm"]]


def fastest(network: Network, batch: int, cost: CostModel) -> Algorithms:
    """The performance-optimal algorithm of each pass of each CONV layer."""
    return {
        layer.index: {pass_: cost.conv_algorithms(layer, batch, pass_)[0] for pass_ in PASSES}
        for layer in network.layers
        if layer.kind == "conv"
    }


def memory_optimal(network: Network, batch: int, cost: CostModel) -> Algorithms:
    """The fastest algorithm without workspace of each pass of each CONV layer: implicit GEMM, on cuDNN."""
    algorithms: dict[int, dict[str, ConvAlgorithm]] = {}
    for layer in network.layers:
        if layer.kind == "conv":
            algorithms[layer.index] = {pass_: _without_workspace(cost, layer, batch, pass_) for pass_ in PASSES}
    return algorithms


def _without_workspace(cost: CostModel, layer: Layer, batch: int, pass_: ConvPass) -> ConvAlgorithm:
    for algorithm in cost.conv_algorithms(layer, batch, pass_):
        if algorithm.name == "implicit_gemm":
            return algorithm
    raise BuddysimError(f"layer {layer.name}: {pass_}: the cost model has no implicit_gemm: expected one of each pass")


def for_variant(name: str, network: Network, batch: int, cost: CostModel) -> Algorithms:
    """The algorithms by the end of a scheme's name: ``-m`` memory-optimal, ``-p`` performance-optimal."""
    return memory_optimal(network, batch, cost) if name.endswith("-m") else fastest(network, batch, cost)
