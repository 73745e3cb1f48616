"""Tensors that PyTorch's autograd saves for the backward step of each layer (2.13).

Each kind of layer declares the tensors that it saves (`LayerKind.saves`). They differ from what vDNN's cuDNN layers
read: max pooling saves its input and the indices of the largest elements, not its output; average pooling saves its
input. If no earlier layer has weights, no gradient is computed and nothing is saved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from buddysim.training.networks import kinds
from buddysim.training.networks.graph import ELEMENT_BYTES, Layer, Network
from buddysim.training.networks.layer_kind import AutogradSaved, Device
from buddysim.training.networks.recorded.network import RecordedNetwork


@dataclass(frozen=True)
class SavedTensors:
    """Tensors of a layer that PyTorch saves in its forward step.

    Attributes
    ----------
    feature_maps : layers whose outputs it saves: some of those that it reads, and itself
    reads : which of X and Y its backward step reads, and dY
    state_bytes : masks, pooling indices, statistics, copies
    weight_bytes : weights and buffers, which stay on the GPU unless saved tensors are moved
    """

    feature_maps: tuple[int, ...]
    reads: frozenset[str]
    state_bytes: int
    weight_bytes: int


def saved_by_torch(network: Network, batch: int, device: Device = "cuda") -> tuple[SavedTensors, ...]:
    """Tensors that PyTorch saves of each layer, in their order.

    Parameters
    ----------
    device : ``"cuda"``, or ``"cpu"``, whose kernels keep other masks and statistics
    """
    if isinstance(network, RecordedNetwork):
        return tuple(_recorded(network, layer) for layer in network.layers)
    learning: list[bool] = []
    saved = []
    for layer in network.layers:
        wants_dx = any(learning[producer] for producer in layer.inputs)
        learning.append(wants_dx or bool(layer.parameters) or any(gemm.weights for gemm in layer.gemms))
        saved.append(
            _saved_tensors(network, layer, batch, device, wants_dx) if learning[-1] and layer.inputs else _NOTHING
        )
    return tuple(saved)


def saved_bytes(network: Network, batch: int, device: Device = "cuda") -> int:
    """Bytes that PyTorch saves between forward and backward: each storage once, without weights and buffers."""
    saved = saved_by_torch(network, batch, device)
    owners = {network.buffer_of(index) for one in saved for index in one.feature_maps}
    return sum(network.output_bytes(owner, batch) for owner in owners) + sum(one.state_bytes for one in saved)


def _recorded(network: RecordedNetwork, layer: Layer) -> SavedTensors:
    """What the record says that autograd saves in a layer."""
    maps = [*network.saved_inputs(layer.index), *([layer.index] if "y" in layer.backward_reads else [])]
    weights = network.saved_weight_bytes(layer.index)
    return SavedTensors(tuple(maps), layer.backward_reads, layer.saved_bytes(network.batch), weights)


_NOTHING = SavedTensors((), frozenset({"dy"}), 0, 0)


def _saved_tensors(network: Network, layer: Layer, batch: int, device: Device, wants_dx: bool) -> SavedTensors:
    shapes = tuple(network.layers[producer].output_shape for producer in layer.inputs)
    saved: AutogradSaved = kinds.REGISTRY.find(layer.kind).saves(layer, shapes, device)
    maps = [layer.inputs[position] for position in saved.inputs]
    state = (saved.map_elements * network.element_bytes + saved.sample_bytes) * batch + saved.fixed_bytes
    weights = saved.weights + (saved.weights_for_dx if wants_dx else 0)
    return SavedTensors(
        tuple(dict.fromkeys([*maps, *([layer.index] if saved.output else [])])),
        frozenset(_names(bool(maps), saved.output)),
        state,
        weights * ELEMENT_BYTES,
    )


def _names(inputs: bool, output: bool) -> Iterable[str]:
    yield "dy"
    if inputs:
        yield "x"
    if output:
        yield "y"
