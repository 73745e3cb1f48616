"""A network as a graph of layers, in the order in which they run.

Sizes are elements of one sample until a batch is named; an element has 4 bytes (single precision). A multiplication
and the addition that follows it count as two FLOPs; padding is counted, biases aren't.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from buddysim.base.errors import BuddysimError

ELEMENT_BYTES = 4
NUMBER_BYTES = 8
"""Of a token's number: PyTorch's integers of 64 bits."""

Shape = tuple[int, ...]
Value = int | float | bool | str | tuple[int, ...]


@dataclass(frozen=True)
class Conv:
    """The shape of a convolution, of one sample: channels, extents in elements, steps in elements."""

    in_channels: int
    out_channels: int
    in_h: int
    in_w: int
    out_h: int
    out_w: int
    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int
    pad_h: int
    pad_w: int
    groups: int = 1
    dilation_h: int = 1
    dilation_w: int = 1

    def __hash__(self) -> int:
        return hash((self.in_channels, self.out_channels, self.in_h, self.kernel_h, self.stride_h))

    @property
    def weights(self) -> int:
        """Elements of the filters, without biases."""
        return self.out_channels * (self.in_channels // self.groups) * self.kernel_h * self.kernel_w

    @property
    def multiply_adds(self) -> int:
        """Multiplications with their additions, of one sample, one pass."""
        return self.weights * self.out_h * self.out_w


@dataclass(frozen=True)
class Gemm:
    """``y[m, n] += x[m, k] w[k, n]``, `count` times for each sample.

    `weights` says that w is a parameter, the same for every sample (a product of two activations, as in attention, has
    none); `per_sample` that m counts the rows of one sample, so that a batch has ``batch x m`` of them.
    """

    m: int
    n: int
    k: int
    count: int = 1
    per_sample: bool = True
    weights: bool = True

    @property
    def multiply_adds(self) -> int:
        """Multiplications with their additions, of one sample, one pass."""
        return self.m * self.n * self.k * self.count


@dataclass(frozen=True)
class Pooling:
    """The window of a pooling layer, in elements."""

    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int
    pad_h: int
    pad_w: int
    ceil: bool = False


@dataclass(frozen=True)
class Layer:
    """One step of the network.

    Attributes
    ----------
    index : its position in the order of execution
    kind : a name of `buddysim.training.networks.kinds.REGISTRY`, or ``"input"``
    inputs : the layers whose outputs it reads, in order
    output_shape : of one sample: ``(C, H, W)``, ``(features,)`` or ``(tokens, features)``
    parameters : weights and biases of its own, in elements
    conv, pool, gemms : its work, if it is of such a kind
    in_place : its output lies in the buffer of its first input
    part : ``"features"`` or ``"classifier"``
    backward_reads : tensors that its backward step reads: a subset of ``{"x", "y", "dy", "mask"}``
    flops : of its forward step, of one sample
    element_bytes : bytes of an element of its output, if not the network's: 8 for token numbers
    saved_sample_bytes, saved_fixed_bytes : bytes saved for its backward step in addition to x and y (dropout mask,
        statistics, states of a recurrent layer): for each sample, and once for any batch
    attributes : names and values, as the network's description has them
    """

    index: int
    name: str
    kind: str
    inputs: tuple[int, ...]
    output_shape: Shape
    parameters: int = 0
    conv: Conv | None = None
    gemms: tuple[Gemm, ...] = ()
    in_place: bool = False
    part: str = "features"
    backward_reads: frozenset[str] = frozenset()
    pool: Pooling | None = None
    flops: int = 0
    saved_sample_bytes: int = 0
    saved_fixed_bytes: int = 0
    element_bytes: int | None = None
    attributes: tuple[tuple[str, Value], ...] = ()

    def __hash__(self) -> int:
        return hash((self.index, self.name))  # of all fields it would take longer than what tables of layers save

    @cached_property
    def output_elements(self) -> int:
        """Elements of its output, of one sample."""
        return math.prod(self.output_shape)

    @property
    def saved_elements(self) -> int:
        """Saved state of one sample in elements of 4 bytes, rounded up."""
        return -(-self.saved_sample_bytes // ELEMENT_BYTES)

    def saved_bytes(self, batch: int) -> int:
        """Bytes of saved state of a batch."""
        return self.saved_sample_bytes * batch + self.saved_fixed_bytes


class Network:
    """Layers in the order in which they run forward; backward is the reverse.

    Parameters
    ----------
    name : for example ``"vgg19"``
    layers : layer 0 is the input; a layer reads only layers before it
    source : where the layer table comes from
    description : description in a line
    """

    element_bytes = ELEMENT_BYTES
    #: Whether layers are recorded operations of a model (`networks.recorded`), not those of the papers' networks.
    recorded = False
    #: What a model's configuration leaves open, by name.
    options: Mapping[str, Value] = {}

    def __init__(self, name: str, layers: Sequence[Layer], source: str = "", description: str = "") -> None:
        self.name = name
        self.layers = tuple(layers)
        self.source = source
        self.description = description
        _check_order(self.layers)

    def at(self, batch: int, optimizer: str = "none") -> Network:
        """Return the network for a batch and an optimizer: itself, where its layers are those of one sample."""
        return self

    def __repr__(self) -> str:
        return f"Network({self.name!r}, {len(self.layers)} layers)"

    @property
    def input_shape(self) -> Shape:
        """Of one sample."""
        return self.layers[0].output_shape

    @property
    def parameters(self) -> int:
        """Weights and biases of all layers, in elements."""
        return sum(layer.parameters for layer in self.layers)

    @cached_property
    def _consumers(self) -> tuple[tuple[int, ...], ...]:
        consumers: list[list[int]] = [[] for _ in self.layers]
        for layer in self.layers:
            for producer in dict.fromkeys(layer.inputs):
                consumers[producer].append(layer.index)
        return tuple(map(tuple, consumers))

    @cached_property
    def _owners(self) -> tuple[int, ...]:
        owners: list[int] = []
        for layer in self.layers:
            owners.append(owners[layer.inputs[0]] if layer.in_place else layer.index)
        return tuple(owners)

    @cached_property
    def _readers(self) -> tuple[tuple[int, ...], ...]:
        readers: list[set[int]] = [set() for _ in self.layers]
        for layer in self.layers:
            for position, producer in enumerate(layer.inputs):
                if not (layer.in_place and position == 0):
                    readers[self._owners[producer]].add(layer.index)
        return tuple(tuple(sorted(indices)) for indices in readers)

    def consumers(self, index: int) -> tuple[int, ...]:
        """The layers that take the output of a layer, in the order in which they run."""
        return self._consumers[index]

    def refcount(self, index: int) -> int:
        """Return the number of layers that read the output of a layer (vDNN, Fig. 3)."""
        return len(self._consumers[index])

    def buffer_of(self, index: int) -> int:
        """The layer that owns the buffer in which a layer's output lies: itself, or the start of its in-place chain."""
        return self._owners[index]

    @cached_property
    def _writers(self) -> dict[int, list[int]]:
        writers: dict[int, list[int]] = {}
        for index, owner in enumerate(self._owners):
            writers.setdefault(owner, []).append(index)
        return writers

    def buffer_writers(self, index: int) -> list[int]:
        """The layers of the in-place chain that writes the buffer that a layer owns, in the order they run."""
        return self._writers.get(index, [])

    @cached_property
    def _input_owners(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(dict.fromkeys(self._owners[i] for i in layer.inputs)) for layer in self.layers)

    def input_buffers(self, index: int) -> tuple[int, ...]:
        """The layers that own the buffers in which a layer's inputs lie, each once, in order."""
        return self._input_owners[index]

    def buffer_readers(self, index: int) -> tuple[int, ...]:
        """The layers that read the buffer that a layer owns from outside its in-place chain, in the order they run."""
        return self._readers[index]

    @cached_property
    def _last_consumers(self) -> tuple[int, ...]:
        last = list(range(len(self.layers)))
        for layer in self.layers:
            for used in (*layer.inputs, layer.index):
                last[self._owners[used]] = layer.index
        return tuple(last)

    @cached_property
    def _last_writers(self) -> tuple[int, ...]:
        last = list(range(len(self.layers)))
        for index, owner in enumerate(self._owners):
            last[owner] = index
        return tuple(last)

    def last_consumer(self, owner: int) -> int:
        """The last layer that reads or writes the buffer that a layer owns, in the forward pass."""
        return self._last_consumers[owner]

    def last_writer(self, owner: int) -> int:
        """The last layer of the in-place chain that a layer starts: the buffer holds its output in the end."""
        return self._last_writers[owner]

    @cached_property
    def buffers(self) -> tuple[int, ...]:
        """The layers that own a buffer, in order; the input is the first."""
        return tuple(sorted(set(self._owners)))

    @cached_property
    def feature_maps(self) -> tuple[int, ...]:
        """The layers whose buffers a step reads: another layer's forward step, or a backward step that wants Y."""
        read_owners = {self._owners[layer.index] for layer in self.layers if "y" in layer.backward_reads}
        return tuple(owner for owner in self.buffers if self._readers[owner] or owner in read_owners)

    def with_element_bytes(self, element_bytes: int) -> Network:
        """Return the network with another number of bytes per element of feature maps; weights stay single."""
        if element_bytes == self.element_bytes:
            return self
        network = Network(self.name, self.layers, self.source, self.description)
        network.element_bytes = element_bytes
        return network

    def with_options(self, changed: Mapping[str, Any]) -> Network:
        """Return the network with changed options of a model's configuration.

        Raises
        ------
        BuddysimError
            a network that no configuration describes
        """
        name = next(iter(changed))
        raise BuddysimError(f"{name}: {self.name} is not a model's configuration: expected a config.json")

    def in_place_only(self, layers: AbstractSet[int] | None) -> Network:
        """Return the network with only these layers in place; None: unchanged.

        Raises
        ------
        ValueError
            where one of the layers can't run in place
        """
        own = {layer.index for layer in self.layers if layer.in_place}
        if layers is None or layers == own:
            return self
        if not layers <= own:
            raise ValueError(f"layers {sorted(layers - own)} can't run in place: expected of {sorted(own)}")
        changed = [replace(layer, in_place=layer.index in layers) for layer in self.layers]
        return Network(self.name, changed, self.source, self.description).with_element_bytes(self.element_bytes)

    def output_bytes(self, index: int, batch: int) -> int:
        """Bytes of a layer's output Y."""
        layer = self.layers[index]
        return layer.output_elements * (layer.element_bytes or self.element_bytes) * batch

    def input_bytes(self, index: int, batch: int) -> int:
        """Bytes of all that a layer reads as X; an input taken twice counts once."""
        return sum(self.output_bytes(producer, batch) for producer in dict.fromkeys(self.layers[index].inputs))

    def layer_parameter_bytes(self, index: int) -> int:
        """Bytes of a layer's weights and biases."""
        return self.layers[index].parameters * ELEMENT_BYTES

    def parameter_bytes(self) -> int:
        """Bytes of all weights and biases."""
        return self.parameters * ELEMENT_BYTES

    def has_gradient(self, index: int) -> bool:
        """Whether the backward pass computes a gradient of a layer's output."""
        return self.layers[index].kind != "input"

    def saved_inputs(self, index: int) -> tuple[int, ...]:
        """The layers whose outputs a layer's backward step reads, where it reads X."""
        return self.layers[index].inputs

    def temporary_bytes(self, index: int, pass_: str) -> int:
        """Bytes that a step of a layer that is no CONV allocates for itself alone."""
        return 0

    def forward_flops(self, index: int, batch: int) -> int:
        """FLOPs of a layer's forward step."""
        return self.layers[index].flops * batch


def _check_order(layers: tuple[Layer, ...]) -> None:
    """The rules that everything that takes a graph relies on; breaking them is a builder's error, not a user's."""
    if not layers or layers[0].kind != "input" or layers[0].inputs:
        raise ValueError("layer 0 must be the input")
    for index, layer in enumerate(layers):
        if layer.index != index:
            raise ValueError(f"layer {layer.name!r} has index {layer.index} at position {index}")
        if index and not layer.inputs:
            raise ValueError(f"layer {layer.name!r} has no input")
        if any(not 0 <= producer < index for producer in layer.inputs):
            raise ValueError(f"layer {layer.name!r} reads a layer that runs after it")
