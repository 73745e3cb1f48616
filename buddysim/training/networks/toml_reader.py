"""Reads network files: a network as TOML (docs/reference/network-files.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.textfile import parse_toml, read_text
from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network

LARGEST_FILE = 2**24
LONGEST_NAME = 120
_KEYS = ("name", "description", "source", "input", "layer")
_LAYER_KEYS = ("kind", "name", "inputs", "part", "in_place")


def read_network(path: Path) -> Network:
    """The network of a file.

    Raises
    ------
    BuddysimError
        where it can't be read or describes no network: the file, the layer and its key, what was expected
    """
    text = read_text(path, "network file", LARGEST_FILE)
    try:
        return parse_network(text, path.stem)
    except BuddysimError as error:
        raise BuddysimError(f"{path}: {error}") from None


def parse_network(text: str, name: str = "network") -> Network:
    """The network that the text of a file describes; `name` is its name where the text has none."""
    content = parse_toml(text)
    _refuse_unknown("", content, _KEYS)
    if "input" not in content:
        raise BuddysimError("input: this key is missing: expected the shape of a sample, for example [3, 224, 224]")
    net = NetworkBuilder(
        _text("name", content.get("name", name)),
        content["input"],
        _text("source", content.get("source", "the user's network file")),
        _text("description", content.get("description", "a user's network")),
    )
    layers = content.get("layer", [])
    if not isinstance(layers, list):
        raise BuddysimError("layer: expected tables, each under [[layer]]")
    for number, layer in enumerate(layers, start=1):
        _add(net, number, layer)
    return net.build()


def _add(net: NetworkBuilder, number: int, layer: Any) -> None:
    where = f"layer {number}"
    if not isinstance(layer, Mapping):
        raise BuddysimError(f"{where}: expected a table of keys, found {shortened(layer)}")
    if "kind" not in layer:
        raise BuddysimError(f"{where}: kind: this key is missing{_misspelt_kind(layer)}")
    kind = _text(f"{where}: kind", layer["kind"])
    name = _text(f"{where}: name", layer.get("name", f"{kind}{number}"))
    in_place = layer.get("in_place", True)
    if not isinstance(in_place, bool):
        raise BuddysimError(f"layer {name!r}: in_place: expected true or false, found {shortened(in_place)}")
    part = layer.get("part")
    if part is not None:
        part = _text(f"layer {name!r}: part", part)
    attributes = {key: value for key, value in layer.items() if key not in _LAYER_KEYS}
    net.add_described(kind, name, _inputs(net, name, layer), part, in_place, attributes)


def _inputs(net: NetworkBuilder, name: str, layer: Mapping[str, Any]) -> list[int] | None:
    if "inputs" not in layer:
        return None
    inputs = layer["inputs"]
    names = [inputs] if isinstance(inputs, str) else inputs
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        raise BuddysimError(f"layer {name!r}: inputs: expected names of layers before it, found {shortened(inputs)}")
    return [net.index_of(one, layer=name) for one in names]


def _misspelt_kind(layer: Mapping[str, Any]) -> str:
    """The nearest of a layer's keys, where it may be a misspelt ``kind``."""
    near = hint("kind", [key for key in layer if key not in _LAYER_KEYS])
    return near.replace("nearest", "nearest of those given")


def _refuse_unknown(where: str, content: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in content:
        if key not in known:
            expected = f"expected one of {', '.join(known)}"
            raise BuddysimError(f"{where}{shortened(key)[1:-1]}: unknown key: {expected}{hint(key, known)}")


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > LONGEST_NAME or not value.isprintable():
        raise BuddysimError(f"{where}: expected a text of 1 to {LONGEST_NAME} letters, found {shortened(value)}")
    return value
