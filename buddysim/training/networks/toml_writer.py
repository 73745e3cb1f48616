"""Writes network files: a network as TOML (docs/reference/network-files.md)."""

from __future__ import annotations

from collections.abc import Iterator

from buddysim.base.textfile import toml_value
from buddysim.training.networks import kinds
from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Layer, Network, Value


def to_toml(network: Network) -> str:
    """The text of a network file that reads back as the same network; only what differs from defaults is written."""
    plain = rebuilt(network)
    about = {"name": network.name, "description": network.description, "source": network.source}
    lines = [f"{key} = {_value(text)}" for key, text in about.items() if text]
    lines.append(f"input = {_value(network.input_shape)}")
    for layer, undecided in zip(network.layers[1:], plain.layers[1:], strict=True):
        lines += ["", "[[layer]]", *_layer_lines(network, layer, undecided)]
    return "\n".join(lines) + "\n"


def rebuilt(network: Network) -> Network:
    """Return the layers with in-place layers and classifier as `NetworkBuilder` derives them."""
    net = NetworkBuilder(network.name, network.input_shape, network.source, network.description)
    for layer in network.layers[1:]:
        net.add_described(layer.kind, layer.name, layer.inputs, None, True, dict(layer.attributes))
    return net.build()


def _layer_lines(network: Network, layer: Layer, undecided: Layer) -> Iterator[str]:
    yield f"kind = {_value(layer.kind)}"
    yield f"name = {_value(layer.name)}"
    if layer.inputs != (layer.index - 1,):
        yield f"inputs = [{', '.join(_value(network.layers[producer].name) for producer in layer.inputs)}]"
    if layer.part != undecided.part:
        yield f"part = {_value(layer.part)}"
    if layer.in_place != undecided.in_place:
        yield f"in_place = {_value(layer.in_place)}"
    defaults = kinds.REGISTRY.find(layer.kind).attributes
    for key, value in layer.attributes:
        short = value[0] if isinstance(value, tuple) and _same_pair(defaults[key].type, value) else value
        if short != defaults[key].default:
            yield f"{key} = {_value(short)}"


def _same_pair(kind: str, value: tuple[int, ...]) -> bool:
    return kind in ("pair", "padding") and value[0] == value[1]


def _value(value: Value) -> str:
    return toml_value(list(value) if isinstance(value, tuple) else value)
