"""Contracts of networks: a sound graph, the same again, that a file can hold, and a training that it can run."""

from __future__ import annotations

from collections.abc import Iterator

from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.texts import not_a_line
from buddysim.training import simulate
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.networks.kinds import REGISTRY as KINDS
from buddysim.training.networks.toml_reader import parse_network
from buddysim.training.networks.toml_writer import to_toml
from buddysim.training.zoo import ZooEntry

#: What the layers of a network that is read from a file must have in common with it.
_COMPARED = ("kind", "inputs", "output_shape", "parameters", "flops", "backward_reads", "in_place", "part")


def _network(subject: Subject) -> Network:
    entry: ZooEntry = subject.member
    return entry.network


def _unsound(subject: Subject) -> Iterator[str]:
    network = _network(subject)
    if network.name != subject.name:
        yield f"its network is called {network.name!r}: expected {subject.name}"
    yield from not_a_line("its description", network.description)
    if subject.member.recorded:
        if not network.parameter_shapes():  # type: ignore[attr-defined]
            yield "it has no weights"
        return
    for layer in network.layers:
        yield from _unsound_layer(layer)


def _unsound_layer(layer: Layer) -> Iterator[str]:
    if layer.kind != "input" and layer.kind not in KINDS:
        yield f"layer {layer.name}: kind {layer.kind!r} is not known"
    if any(number >= layer.index for number in layer.inputs):
        yield f"layer {layer.name} reads a layer that comes later"
    if min(layer.output_shape, default=0) < 1 or min(layer.parameters, layer.flops) < 0:
        yield f"layer {layer.name}: {layer.output_shape}, {layer.parameters} parameters, {layer.flops} FLOPs"


def _different(subject: Subject) -> Iterator[str]:
    if not subject.member.recorded:
        yield from _differences(_network(subject).layers, subject.member.build().layers, "built again")


def _not_read(subject: Subject) -> Iterator[str]:
    if not subject.member.recorded:
        network = _network(subject)
        yield from _differences(network.layers, parse_network(to_toml(network), subject.name).layers, "in a file")


def _differences(one: tuple[Layer, ...], other: tuple[Layer, ...], occasion: str) -> Iterator[str]:
    if len(one) != len(other):
        yield f"{occasion} it has {len(other)} layers: expected {len(one)}"
        return
    for first, second in zip(one, other, strict=True):
        for name in _COMPARED:
            values = getattr(first, name), getattr(second, name)
            if values[0] != values[1]:
                yield f"{occasion} {name} of layer {first.name} is {values[1]}: expected {values[0]}"


def _not_trained(subject: Subject) -> Iterator[str]:
    if subject.member.recorded:
        return
    counters = simulate(subject.name, 1, "titan-x", "oracle").counters
    weights = 4 * sum(layer.parameters for layer in _network(subject).layers)
    if not counters["time_ms"] > 0:
        yield f"an iteration takes {counters['time_ms']} ms: expected more than 0"
    if counters["memory.peak_bytes"] < 2 * weights:
        peak = counters["memory.peak_bytes"]
        yield f"an iteration takes {peak} B: expected its weights and gradients, {2 * weights} B"


def _settings(subject: Subject) -> Iterator[str]:
    for name, default in subject.member.settings.items():
        text = str(default).lower()
        changed = subject.member.with_settings(f"{name}={text}")
        if changed.name != f"{subject.name}:{name}={text}":
            yield f"with {name}={text} its network is called {changed.name}"
        if not subject.member.recorded:
            yield from _differences(_network(subject).layers, changed.layers, f"with the default of {name}")


CONTRACTS = {
    "network": (
        Contract("its network has its name and sound layers, each after those it reads", _unsound, safe=True),
        Contract("two networks made alike are equal", _different),
        Contract("it is the same in a network file", _not_read),
        Contract("a setting's default changes nothing", _settings),
        Contract("an iteration takes time, and at least the memory of weights and gradients", _not_trained),
    )
}
