"""Facts of a network as JSON has them: shapes, FLOPs, bytes by kind, layer by layer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.training.named_network import load_network
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.networks.network_bytes import baseline_network_bytes
from buddysim.training.networks.recorded_facts import recorded_facts
from buddysim.training.networks.torch_saves import saved_bytes
from buddysim.training.recorded_step.from_config import ConfigNetwork

FLOPS_RULE = (
    "a multiplication and its addition are two FLOPs, padding counted, biases not; "
    "backward: twice the forward FLOPs of layers with weights or two factors, once those of others"
)
MEMORY_RULE = (
    "each feature map that a step reads once (in-place layers share one); two gradient maps of the largest size; "
    "saved_by_torch: bytes that PyTorch's autograd saves between forward and backward on a GPU, without weights"
)


def backward_flops(network: Network, index: int, batch: int) -> int:
    """FLOPs of a layer's backward step: gradient of its input, and of its weights or second factor where it has any.

    A layer that reads the network's input has no input gradient to compute.
    """
    layer = network.layers[index]
    gradients = 2 if layer.conv or layer.gemms else 1
    if layer.inputs == (0,):
        gradients -= 1
    return gradients * network.forward_flops(index, batch)


def summary(network: Network | str) -> dict[str, Any]:
    """A row of `networks list --json`; of a name whose network can't be made, the description says so."""
    if isinstance(network, str):
        try:
            return summary(load_network(network))
        except BuddysimError:
            return {"name": network, "description": "contradicts itself", "parameters": None, **_UNKNOWN}
    if isinstance(network, ConfigNetwork):
        return _config_summary(network)
    kinds = [layer.kind for layer in network.layers]
    return {
        "name": network.name,
        "description": network.description,
        "source": network.source,
        "input_shape": list(network.input_shape),
        "layers": len(network.layers) - 1,
        "conv_layers": kinds.count("conv"),
        "parameters": network.parameters,
        "forward_flops_per_sample": sum(layer.flops for layer in network.layers),
    }


_UNKNOWN: dict[str, Any] = {
    "source": "config.json",
    "input_shape": [],
    "layers": None,
    "conv_layers": 0,
    "forward_flops_per_sample": None,
}


def _config_summary(network: ConfigNetwork) -> dict[str, Any]:
    """The same of a model's configuration, without recording a step: FLOPs and layers depend on the batch."""
    return {
        **_UNKNOWN,
        "name": network.name,
        "description": network.description,
        "source": network.source,
        "input_shape": list(network.input_shape),
        "parameters": network.parameters,
    }


def facts(network: Network, batch: int) -> dict[str, Any]:
    """Return the content of `networks show --json`."""
    if network.recorded:
        return recorded_facts(network, batch)
    footprint = baseline_network_bytes(network, batch)
    layers = range(len(network.layers))
    return {
        **summary(network),
        "batch": batch,
        "element_bytes": network.element_bytes,
        "forward_flops": sum(network.forward_flops(index, batch) for index in layers),
        "backward_flops": sum(backward_flops(network, index, batch) for index in layers if index),
        "memory": {
            "weights_bytes": footprint.weights,
            "weight_gradient_bytes": footprint.weight_gradients,
            "feature_map_bytes": footprint.feature_maps,
            "gradient_map_bytes": footprint.gradient_maps,
            "saved_state_bytes": footprint.saved_state,
            "saved_by_torch_bytes": saved_bytes(network, batch),
            "total_bytes": footprint.total,
        },
        "assumptions": {"flops": FLOPS_RULE, "memory": MEMORY_RULE},
        "per_layer": [_layer_facts(network, layer, batch) for layer in network.layers],
    }


def _layer_facts(network: Network, layer: Layer, batch: int) -> dict[str, Any]:
    return {
        "index": layer.index,
        "name": layer.name,
        "kind": layer.kind,
        "part": layer.part,
        "inputs": list(layer.inputs),
        "refcount": network.refcount(layer.index),
        "output_shape": list(layer.output_shape),
        "in_place": layer.in_place,
        "buffer": network.buffer_of(layer.index),
        "backward_reads": sorted(layer.backward_reads),
        "parameters": layer.parameters,
        "input_bytes": network.input_bytes(layer.index, batch),
        "output_bytes": network.output_bytes(layer.index, batch),
        "parameter_bytes": network.layer_parameter_bytes(layer.index),
        "saved_bytes": layer.saved_bytes(batch),
        "forward_flops": network.forward_flops(layer.index, batch),
        "backward_flops": backward_flops(network, layer.index, batch) if layer.index else 0,
        "conv": asdict(layer.conv) if layer.conv else None,
        "pool": asdict(layer.pool) if layer.pool else None,
        "gemms": [asdict(gemm) for gemm in layer.gemms],
        "attributes": {key: list(value) if isinstance(value, tuple) else value for key, value in layer.attributes},
    }
