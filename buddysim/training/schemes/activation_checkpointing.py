"""Activation checkpointing as `torch.utils.checkpoint` does it, with about the square root of n segments.

A network is cut where all that later layers read is one feature map. As in `checkpoint_sequential`, segments have the
same number of pieces, each but the last saves only its input and is recomputed before its backward steps, up
to the last tensor that those read (`checkpoint` without re-entry stops there), and the last segment saves everything.
Layers save what PyTorch's do. Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016), choose sqrt(n).
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

from buddysim.training.iteration.plan import Plan, TrainingOptions
from buddysim.training.networks.torch_saves import saved_by_torch
from buddysim.training.schemes import UNCHANGED, _algorithms

if TYPE_CHECKING:
    from buddysim.machine.training import TrainingMachine
    from buddysim.training.cost import CostModel
    from buddysim.training.networks.graph import Network

SUMMARY = {"activation-checkpointing": "recomputation of segments from their saved inputs, as PyTorch does"}
FAMILY = "pytorch"
ORDER = 510
ACCURACY = UNCHANGED


def plan(
    network: Network, batch: int, machine: TrainingMachine, cost: CostModel, name: str, options: TrainingOptions
) -> Plan:
    """Nothing moves; the fastest CONV algorithms."""
    saved_tensors = dict(enumerate(saved_by_torch(network, batch)))
    parts = segments(network)
    return Plan(
        name,
        _algorithms.fastest(network, batch, cost),
        segments=parts[:-1],
        backward_reads={index: saved.reads for index, saved in saved_tensors.items()},
        saved_bytes={index: saved.state_bytes for index, saved in saved_tensors.items()},
        nothing_to_do="nothing to recompute: no point at which one feature map divides the network" * (len(parts) == 1),
        notes=(f"{len(parts)} segments, all but the last recomputed",),
    )


def split_points(network: Network) -> tuple[tuple[int, int], ...]:
    """First and last layer of the smallest parts that the network can be cut into, the input left out.

    A cut follows a layer whose output alone is read by the layers after it, and never divides an in-place chain.
    Outputs of a recorded network that need no gradient don't count.
    """
    last_reader = [max(network.consumers(layer.index), default=layer.index) for layer in network.layers]
    if network.recorded:  # positions, masks and labels are arguments of every segment
        for layer in network.layers:
            if not network.has_gradient(layer.index):
                last_reader[layer.index] = layer.index
    parts = []
    first, reach = 1, last_reader[0]
    for layer in network.layers[1:]:
        cuts_before = reach <= layer.index  # nothing but this layer's output is read later on
        reach = max(reach, last_reader[layer.index])
        following = layer.index + 1
        chained = following < len(network.layers) and network.layers[following].in_place
        if cuts_before and not chained:
            parts.append((first, layer.index))
            first = following
    if first < len(network.layers):
        parts.append((first, len(network.layers) - 1))
    return tuple(parts)


def segments(network: Network) -> tuple[tuple[int, int], ...]:
    """About sqrt(n) parts of equally many pieces; the last one takes the remainder, as `checkpoint_sequential`."""
    parts = split_points(network)
    count = max(1, isqrt(len(parts)))
    size = len(parts) // count
    starts = [parts[number * size][0] for number in range(count)]
    ends = [start - 1 for start in starts[1:]] + [len(network.layers) - 1]
    return tuple(zip(starts, ends, strict=True))
