"""Networks as tables: a row for each network, or for each layer of one."""

from __future__ import annotations

from typing import Any

from buddysim.report.recorded_network import recorded_parts
from buddysim.report.screen import NOT_APPLICABLE, Column, Part, ScreenTable
from buddysim.training.network_facts import facts
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.networks.network_bytes import NetworkBytes, baseline_network_bytes
from buddysim.training.networks.torch_saves import saved_bytes

_GIB, _MIB = 2**30, 2**20
_SCALES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def list_table(summaries: list[dict[str, Any]]) -> ScreenTable:
    """The table of `networks list`."""
    headings = ("layers", "CONV\nlayers", "parameters", "FLOPs per\nsample")
    rows = [
        (
            row["name"],
            _shape_text(row["input_shape"]),
            NOT_APPLICABLE if row["layers"] is None else str(row["layers"]),
            str(row["conv_layers"] or NOT_APPLICABLE),
            NOT_APPLICABLE if row["parameters"] is None else f"{row['parameters']:,}",
            NOT_APPLICABLE if row["forward_flops_per_sample"] is None else _scaled(row["forward_flops_per_sample"]),
            row["description"],
        )
        for row in summaries
    ]
    named = (Column("network", left=True), Column("input", left=True))
    return ScreenTable([*named, *map(Column, headings), Column("description", left=True, text=True)], rows)


def network_parts(network: Network, batch: int) -> list[Part]:
    """The screen of `networks show`: what a network is, bytes by kind, and a row for each layer."""
    if network.recorded:
        return recorded_parts(network, batch)
    shown = facts(network, batch)
    return [
        f"{network.name}: {network.description}",
        f"source: {network.source or 'not named'}",
        f"batch {batch}, {shown['layers']} layers, {network.parameters:,} parameters, "
        f"{_scaled(shown['forward_flops'])}FLOP forward, {_scaled(shown['backward_flops'])}FLOP backward",
        "",
        _memory_table(baseline_network_bytes(network, batch), saved_bytes(network, batch)),
        "",
        _layer_table(network, batch),
        "",
        *(f"assumed: {rule}" for rule in shown["assumptions"].values()),
    ]


def _memory_table(footprint: NetworkBytes, saved_by_autograd: int) -> ScreenTable:
    rows = (
        ("weights", footprint.weights),
        ("weight gradients", footprint.weight_gradients),
        ("feature maps", footprint.feature_maps),
        ("gradient maps (2)", footprint.gradient_maps),
        ("all, without workspace", footprint.total),
        ("in addition: masks, statistics", footprint.saved_state),
        ("saved by PyTorch's autograd, on a GPU", saved_by_autograd),
    )
    columns = [Column("network-wide allocation", left=True), Column("bytes"), Column("GiB")]
    return ScreenTable(columns, [(name, f"{size:,}", f"{size / _GIB:.3f}") for name, size in rows])


def _layer_table(network: Network, batch: int) -> ScreenTable:
    rows = []
    for layer in network.layers:
        reuses_input = layer.in_place
        rows.append(
            (
                str(layer.index),
                layer.name,
                layer.kind + (" (in place)" if reuses_input else ""),
                _reads(layer),
                str(network.refcount(layer.index)),
                _shape_text(layer.output_shape),
                NOT_APPLICABLE if reuses_input else f"{network.output_bytes(layer.index, batch) / _MIB:,.1f}",
                f"{layer.parameters:,}" if layer.parameters else NOT_APPLICABLE,
                _scaled(network.forward_flops(layer.index, batch)),
                " ".join(sorted(layer.backward_reads)),
            )
        )
    names = [Column(""), Column("layer", left=True)]
    what = [Column("kind", left=True), Column("reads\nlayers", left=True)]
    numbers = map(Column, ("refs", "output\nvalues", "output\nMiB", "parameters", "forward\nFLOPs"))
    return ScreenTable([*names, *what, *numbers, Column("backward\nreads", left=True)], rows, names=2)


def _reads(layer: Layer) -> str:
    """Nothing where it reads the layer right before it."""
    return "" if layer.inputs in ((), (layer.index - 1,)) else " ".join(map(str, layer.inputs))


def _shape_text(shape: tuple[int, ...] | list[int]) -> str:
    return "x".join(map(str, shape)) or "?"


def _scaled(amount: int) -> str:
    for factor, prefix in _SCALES:
        if amount >= factor:
            return f"{amount / factor:.2f} {prefix}"
    return f"{amount} " if amount else "-"
