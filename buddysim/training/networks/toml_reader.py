"""Reads network files: a network as TOML (docs/reference/network-files.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint
from buddysim.base.schema import Schema, checked
from buddysim.base.textfile import parse_toml, read_text
from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network
from buddysim.training.networks.layer_kind import LARGEST

LARGEST_FILE = 2**24
LONGEST_NAME = 120


def _printable(text: str) -> str:
    if not text or len(text) > LONGEST_NAME or not text.isprintable():
        raise ValueError(f"a text of 1 to {LONGEST_NAME} letters")
    return text


Name = Annotated[str, AfterValidator(_printable)]


class NetworkFile(Schema):
    """A network file: a layer's fields are those of `LayerFields`."""

    input: list[Annotated[int, Field(ge=1, le=LARGEST)]]
    name: Name | None = None
    source: Name = "the user's network file"
    description: Name = "a user's network"
    layer: list[dict[str, Any]] = Field(default_factory=list)


class LayerFields(Schema):
    """The fields that every kind of layer has; a kind declares the others, its attributes."""

    model_config = ConfigDict(extra="allow")

    kind: Name
    name: Name | None = None
    inputs: Annotated[list[Name], Field(min_length=1)] | Name | None = None
    part: Literal["features", "classifier"] | None = None
    in_place: bool = True


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
    if "input" not in content:
        near = _misspelt("input", content, NetworkFile)
        raise BuddysimError(f"input: this key is missing{near}: expected the shape of a sample, such as [3, 224, 224]")
    file = checked(NetworkFile, content)
    net = NetworkBuilder(file.name or name, file.input, file.source, file.description)
    for number, layer in enumerate(file.layer, start=1):
        _add(net, number, layer)
    return net.build()


def _add(net: NetworkBuilder, number: int, content: dict[str, Any]) -> None:
    where = f"layer {number}"
    if "kind" not in content:
        raise BuddysimError(f"{where}: kind: this key is missing{_misspelt('kind', content, LayerFields)}")
    layer = checked(LayerFields, content, where)
    name = layer.name or f"{layer.kind}{number}"
    names = [layer.inputs] if isinstance(layer.inputs, str) else layer.inputs
    inputs = None if names is None else [net.index_of(one, layer=name) for one in names]
    net.add_described(layer.kind, name, inputs, layer.part, layer.in_place, layer.model_extra or {})


def _misspelt(key: str, content: Mapping[str, Any], schema: type[Schema]) -> str:
    """The nearest of the unknown keys, where it may be a misspelt one."""
    near = hint(key, [one for one in content if one not in schema.model_fields])
    return near.replace("nearest", "nearest of those given")
