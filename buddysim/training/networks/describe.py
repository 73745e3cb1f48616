"""A network as a table and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from buddysim.training.networks.footprint import Footprint, baseline_footprint
from buddysim.training.networks.graph import Layer, Network

TABLE_WIDTH = 150
_GIB = 2**30
_SCALES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))

# Cost of the gradients relative to a forward step: a CONV or FC layer computes two, any other layer one.
BACKWARD_FLOPS = "backward: twice the forward FLOPs of layers with weights or two factors, once those of others"


def backward_flops(network: Network, index: int, batch: int) -> int:
    """FLOPs of a layer's backward step: gradient of its input, and of its weights or second factor where it has any.

    A layer that reads the network's input has no input gradient to compute.
    """
    layer = network.layers[index]
    gradients = 2 if layer.conv or layer.gemms else 1
    if layer.inputs == (0,):
        gradients -= 1
    return gradients * network.forward_flops(index, batch)


def summary(network: Network) -> dict[str, Any]:
    """Facts of a network for a list, as JSON has them."""
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


def facts(network: Network, batch: int) -> dict[str, Any]:
    """What `dnn info --json` prints."""
    footprint = baseline_footprint(network, batch)
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
            "total_bytes": footprint.total,
        },
        "assumptions": {"flops": _flops_rule(), "memory": _memory_rule()},
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
        "needs": sorted(layer.needs),
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


def list_table(summaries: list[dict[str, Any]]) -> Table:
    """The table of `dnn list`."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("network", "input", "layers", "CONV", "parameters", "FLOPs"):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "network" else "right")
    table.add_column("what it is", overflow="fold")
    for row in summaries:
        table.add_row(
            row["name"],
            _shape_text(row["input_shape"]),
            str(row["layers"]),
            str(row["conv_layers"] or "-"),
            f"{row['parameters']:,}",
            _scaled(row["forward_flops_per_sample"]),
            row["description"],
        )
    return table


def table(network: Network, batch: int) -> RenderableType:
    """One network: what it is, bytes by kind, and a row for each layer."""
    shown = facts(network, batch)
    heading = (
        f"{network.name}: {network.description}\n"
        f"source: {network.source or 'not named'}\n"
        f"batch {batch}, {shown['layers']} layers, {network.parameters:,} parameters, "
        f"{_scaled(shown['forward_flops'])}FLOP forward, {_scaled(shown['backward_flops'])}FLOP backward"
    )
    return Group(
        Text(heading + "\n"),
        _memory_table(baseline_footprint(network, batch)),
        Text(),
        _layer_table(network, batch),
        Text(f"\nassumed: {_flops_rule()}\nassumed: {_memory_rule()}"),
    )


def _memory_table(footprint: Footprint) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("network-wide allocation", no_wrap=True)
    for heading in ("bytes", "GiB"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = (
        ("weights", footprint.weights),
        ("weight gradients", footprint.weight_gradients),
        ("feature maps", footprint.feature_maps),
        ("gradient maps (2)", footprint.gradient_maps),
        ("all, without workspace", footprint.total),
        ("besides: masks, statistics", footprint.saved_state),
    )
    for name, size in rows:
        table.add_row(name, f"{size:,}", f"{size / _GIB:.3f}")
    return table


def _layer_table(network: Network, batch: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    left = ("layer", "kind", "reads", "needs")
    for heading in ("", "layer", "kind", "reads", "refs", "output", "MB", "parameters", "FLOPs", "needs"):
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=heading != "layer")
    for layer in network.layers:
        in_place = layer.in_place
        table.add_row(
            str(layer.index),
            layer.name,
            f"{layer.kind}{' (in place)' if in_place else ''}",
            _reads(layer),
            str(network.refcount(layer.index)),
            _shape_text(layer.output_shape),
            "-" if in_place else f"{network.output_bytes(layer.index, batch) / 1e6:,.1f}",
            f"{layer.parameters:,}" if layer.parameters else "-",
            _scaled(network.forward_flops(layer.index, batch)),
            " ".join(sorted(layer.needs)),
        )
    return table


def _reads(layer: Layer) -> str:
    """Nothing where it reads the layer right before it."""
    return "" if layer.inputs in ((), (layer.index - 1,)) else " ".join(map(str, layer.inputs))


def _shape_text(shape: tuple[int, ...] | list[int]) -> str:
    return "x".join(map(str, shape))


def _scaled(amount: int) -> str:
    for factor, prefix in _SCALES:
        if amount >= factor:
            return f"{amount / factor:.2f} {prefix}"
    return f"{amount} " if amount else "-"


def _flops_rule() -> str:
    return f"a multiplication and its addition are two FLOPs, padding counted, biases not; {BACKWARD_FLOPS}"


def _memory_rule() -> str:
    return (
        "each feature map that a step reads once (in-place layers share theirs); two gradient maps of the largest size"
    )
