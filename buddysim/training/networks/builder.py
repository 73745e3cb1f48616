"""Builds a network layer by layer: shapes, parameters and work follow from the kinds of its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.training.networks import kinds
from buddysim.training.networks.graph import NUMBER_BYTES, Layer, Network, Shape, Value
from buddysim.training.networks.kinds import rules_of
from buddysim.training.networks.layer_kind import LARGEST, Attribute, LayerKind, ShapeMismatch

MAX_LAYERS = 100_000
PARTS = ("features", "classifier")
_INPUT_READS: frozenset[str] = frozenset()


@dataclass
class NetworkBuilder:
    """Adds layers in the order in which they run; a layer reads the one before it unless its inputs are named.

    >>> net = NetworkBuilder("small", (3, 8, 8))
    >>> trunk = net.add("conv", channels=4, kernel=3, pad=1)
    >>> net.add("relu")
    2
    >>> net.add("add", inputs=[trunk, 2])  # the ReLU can't run in place now: the sum reads what it would overwrite
    3
    >>> net.build().layers[2].in_place
    False

    Parameters
    ----------
    input_shape : of one sample: channels x height x width, or tokens, or tokens x features
    """

    name: str
    input_shape: Sequence[int]
    source: str = ""
    description: str = ""
    _layers: list[Layer] = field(default_factory=list, repr=False)
    _parts: dict[int, str] = field(default_factory=dict, repr=False)
    _out_of_place: set[int] = field(default_factory=set, repr=False)
    _by_name: dict[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        shape = _shape("input", self.input_shape)
        if len(shape) > 3:
            raise BuddysimError(f"input: expected one to three extents, found {len(shape)}")
        self._layers.append(Layer(0, "input", "input", (), shape, backward_reads=_INPUT_READS))
        self._by_name["input"] = 0

    @property
    def last(self) -> int:
        """The layer that was added last."""
        return self._layers[-1].index

    def shape(self, index: int) -> Shape:
        """The output shape of a layer, of one sample."""
        return self._layers[index].output_shape

    def name_of(self, index: int) -> str:
        """The name of a layer."""
        return self._layers[index].name

    def kind(self, index: int) -> str:
        """The kind of a layer."""
        return self._layers[index].kind

    def has(self, name: str) -> bool:
        """Whether a layer has this name."""
        return name in self._by_name

    def index_of(self, name: str, layer: str = "") -> int:
        """The layer of a name; `layer` is the one that refers to it, for errors."""
        if name not in self._by_name:
            where, what = (f"layer {layer!r}: ", "a layer before it") if layer else ("", "a layer")
            raise BuddysimError(f"{where}{shortened(name)} is not {what}{hint(name, self._by_name)}")
        return self._by_name[name]

    def add(
        self,
        kind: str,
        *,
        inputs: int | Sequence[int] | None = None,
        name: str | None = None,
        part: str | None = None,
        in_place: bool = True,
        **attributes: Any,
    ) -> int:
        """Adds a layer and returns its index.

        Parameters
        ----------
        kind : a name of `buddysim.training.networks.kinds.REGISTRY`
        inputs : the layers that it reads; None: the layer added last
        name : None: the kind and a number
        part : ``"features"`` or ``"classifier"``; None: the classifier is the fully connected layers at the end of the
            network, and the layers between them
        in_place : whether it may run in place, if its kind can and nothing else needs what it overwrites
        attributes : attributes of its kind
        """
        return self.add_described(kind, name, inputs, part, in_place, attributes)

    def add_described(
        self,
        kind: str,
        name: str | None,
        inputs: int | Sequence[int] | None,
        part: str | None,
        in_place: bool,
        attributes: Mapping[str, Any],
    ) -> int:
        """As `add`, with the attributes as a mapping: their names may come from a file."""
        index = len(self._layers)
        name = f"{kind}{index}" if name is None else name
        if kind not in kinds.REGISTRY:
            near = hint(kind, kinds.REGISTRY.names())
            raise BuddysimError(f"layer {shortened(name)}: {shortened(kind)} is not a kind of layer{near}")
        if name in self._by_name:
            raise BuddysimError(f"layer {shortened(name)}: another layer has this name")
        if index >= MAX_LAYERS:
            raise BuddysimError(f"layer {shortened(name)}: expected at most {MAX_LAYERS} layers")
        if part is not None and part not in PARTS:
            raise BuddysimError(f"layer {name!r}: part: {shortened(part)} is not a part{hint(part, PARTS)}")
        read = (self.last,) if inputs is None else (inputs,) if isinstance(inputs, int) else tuple(inputs)
        rules = kinds.REGISTRY.find(kind)
        _check_inputs(name, rules, read, index)
        complete = _complete(name, rules, attributes)
        try:
            facts = rules.infer(tuple(self._layers[producer].output_shape for producer in read), complete)
        except ShapeMismatch as mismatch:
            raise BuddysimError(f"layer {name!r} ({kind}): {mismatch}") from None
        stated = tuple((key, value) for key, value in complete.items() if value is not None)
        self._layers.append(
            Layer(
                index,
                name,
                kind,
                read,
                facts.output_shape,
                parameters=facts.parameters,
                conv=facts.conv,
                gemms=facts.gemms,
                backward_reads=rules.backward_reads,
                pool=facts.pool,
                flops=facts.flops,
                saved_sample_bytes=facts.saved_sample_bytes,
                saved_fixed_bytes=facts.saved_fixed_bytes,
                attributes=stated,
            )
        )
        self._by_name[name] = index
        if part is not None:
            self._parts[index] = part
        if not in_place:
            self._out_of_place.add(index)
        return index

    def build(self) -> Network:
        """The network; in-place layers and the classifier are derived."""
        if len(self._layers) == 1:
            raise BuddysimError(f"{self.name}: expected a layer after the input, found none")
        consumers: list[set[int]] = [set() for _ in self._layers]
        for layer in self._layers:
            for producer in layer.inputs:
                consumers[producer].add(layer.index)
        for layer in self._layers[:-1]:
            if not consumers[layer.index] and _role(layer) != "loss":
                raise BuddysimError(
                    f"layer {layer.name!r}: nothing reads its output, and it is neither the last layer nor a loss"
                )
        first_closing = _first_closing(self._layers)
        built: list[Layer] = []
        for layer in self._layers:
            if any(rules_of(self._layers[reader]).reads_numbers for reader in consumers[layer.index]):
                layer = replace(layer, element_bytes=NUMBER_BYTES)
            in_place = layer.index not in self._out_of_place and _runs_in_place(layer, built, consumers)
            part = PARTS[layer.index >= first_closing]
            built.append(replace(layer, in_place=in_place, part=self._parts.get(layer.index, part)))
        return Network(self.name, built, self.source, self.description)


def _runs_in_place(layer: Layer, before: Sequence[Layer], consumers: Sequence[set[int]]) -> bool:
    """Whether a layer may put its output over its input.

    No other step may read the overwritten feature map: not another layer, and not the backward step of the layer that
    wrote it, nor that of one further up the chain of layers in this buffer. A ReLU's backward step only asks where its
    output is zero, which a layer that keeps signs leaves as it was.
    """
    if layer.kind == "input" or rules_of(layer).runs_in_place == "never":
        return False
    if rules_of(layer).runs_in_place == "view":
        return True
    below = before[layer.inputs[0]]
    while True:
        if below.kind == "input" or len(consumers[below.index]) > 1:
            return False
        zeros_suffice = rules_of(below).reads_zeros and rules_of(layer).keeps_sign
        if "y" in below.backward_reads and not zeros_suffice:
            return False
        if not below.in_place:
            return True
        below = before[below.inputs[0]]


def _first_closing(layers: Sequence[Layer]) -> int:
    """Return the first layer of the classifier: the first fully connected layer at the end of the network.

    A view or a dropout directly before it belongs to the classifier, too.
    """
    start = len(layers)
    while start > 1 and _role(layers[start - 1]) != "outside":
        start -= 1
    dense = next((layer.index for layer in layers[start:] if _role(layer) == "dense"), len(layers))
    if dense == len(layers):
        return next((layer.index for layer in layers[start:] if _role(layer) == "loss"), dense)
    while dense > start and _role(layers[dense - 1]) == "before":
        dense -= 1
    return dense


def _role(layer: Layer) -> str:
    """A layer's part in the classifier, as its kind declares it."""
    return "outside" if layer.kind == "input" else rules_of(layer).classifier


def _check_inputs(name: str, kind: LayerKind, read: tuple[int, ...], index: int) -> None:
    if len(read) < kind.min_inputs or (kind.max_inputs is not None and len(read) > kind.max_inputs):
        least, most = kind.min_inputs, kind.max_inputs
        expected = f"{least} or more inputs" if most is None else f"{least} input{'s' if least > 1 else ''}"
        raise BuddysimError(f"layer {name!r} ({kind.name}): expected {expected}, found {len(read)}")
    if any(not 0 <= producer < index for producer in read):
        raise BuddysimError(f"layer {name!r}: it must read layers before it")


def _complete(name: str, kind: LayerKind, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a layer with every default filled in, each checked."""
    for key in attributes:
        if key not in kind.attributes:
            expected = f"one of {', '.join(kind.attributes)}" if kind.attributes else "none"
            unknown = f"{shortened(key)[1:-1]}: unknown key{hint(key, kind.attributes)}"
            raise BuddysimError(f"layer {name!r} ({kind.name}): {unknown}: expected {expected}")
    complete: dict[str, Any] = {}
    for key, attribute in kind.attributes.items():
        value = attributes.get(key, attribute.default)
        if value is None and not attribute.optional:
            raise BuddysimError(f"layer {name!r} ({kind.name}): {key}: this key is missing")
        where = f"layer {name!r} ({kind.name}): {key}"
        complete[key] = None if value is None else _checked(where, attribute, value)
    return complete


def _checked(where: str, attribute: Attribute, value: Any) -> Value:
    kind = attribute.type
    if kind == "flag":
        if not isinstance(value, bool):
            raise BuddysimError(f"{where}: expected true or false, found {shortened(value)}")
        return value
    if kind == "fraction":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise BuddysimError(f"{where}: expected a number from 0 up to, but below, 1, found {shortened(value)}")
        return float(value)
    if kind == "shape":
        return _shape(where, value)
    least = 0 if kind in ("size", "padding") else 1
    if kind in ("pair", "padding"):
        both = value if isinstance(value, Sequence) and not isinstance(value, str) else (value, value)
        if len(both) != 2:
            raise BuddysimError(f"{where}: expected one number, or height and width, found {shortened(value)}")
        return (_whole(where, both[0], least), _whole(where, both[1], least))
    return _whole(where, value, least)


def _whole(where: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
        raise BuddysimError(f"{where}: expected an integer from {least} to {LARGEST}, found {shortened(value)}")
    return value


def _shape(where: str, value: Any) -> Shape:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise BuddysimError(f"{where}: expected extents, for example [3, 224, 224], found {shortened(value)}")
    return tuple(_whole(where, extent, 1) for extent in value)
