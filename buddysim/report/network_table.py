"""Networks as tables: a row for each network, or for each layer of one."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from buddysim.training.networks.facts import facts
from buddysim.training.networks.footprint import Footprint, baseline_footprint
from buddysim.training.networks.graph import Layer, Network

TABLE_WIDTH = 150
_GIB = 2**30
_SCALES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


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


def network_table(network: Network, batch: int) -> RenderableType:
    """The table of `dnn info`: what a network is, bytes by kind, and a row for each layer."""
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
        Text("".join(f"\nassumed: {rule}" for rule in shown["assumptions"].values())),
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
