"""Zeros of a network's feature maps: which layers make them, and how they spread to the layers behind.

A feature map is named by the layer that writes it last: an in-place ReLU, not the CONV before it. Only a ReLU's zeros
depend on the training; every other layer retains or removes zeros as its kind declares (`Kind.zeros`).
docs/explanation/cdma.md has a table of the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from buddysim.compress.compressors import find
from buddysim.training.networks import kinds
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.networks.layer_kind import Zeros

if TYPE_CHECKING:
    from buddysim.compress.tensors import TensorRatio

#: Kinds of feature maps whose contents come from a source.
SOURCED = ("relu", "fc-relu", "pool")


@dataclass(frozen=True)
class Codec:
    """Compressor of feature maps, with its layout and window.

    Attributes
    ----------
    algorithm : a compressor of `buddysim.compress`
    layout : order of the tensors' axes in memory
    window : bytes that are compressed independently; 128 for compressors of memory-entries, which have no windows
    masks : whether mask bits (ZVC's) count. In the cDMA paper's ratios they do not: 60 % zeros give 2.5, not 2.32
    """

    algorithm: str = "zvc"
    layout: str = "NCHW"
    window: int = 4096
    masks: bool = True

    @property
    def from_density(self) -> Callable[[float], float] | None:
        """Return the function from density to compressed fraction; None if a codec needs more than the density."""
        stated: Callable[[float, bool], float] | None = getattr(find(self.algorithm), "fraction_of_density", None)
        return None if stated is None else lambda density: stated(density, self.masks)

    def compressed_fraction(self, ratio: TensorRatio) -> float:
        """Return compressed over uncompressed bytes of a tensor."""
        bits = ratio.bits if self.masks else ratio.bits - ratio.mask_bits
        return bits / (8 * ratio.raw_bytes)

    def __str__(self) -> str:
        masks = "" if self.masks else ", masks not counted"
        units = "windows" if "window" in find(self.algorithm).OPTIONS else "entries"
        return f"{self.algorithm}{masks}, {self.layout}, {units} of {self.window} B"


@dataclass(frozen=True)
class MapContents:
    """Contents of a feature map, and its compressed size.

    Attributes
    ----------
    density : fraction of nonzero elements; None if only a ratio is known
    compressed_fraction : compressed over uncompressed bytes
    origin : source of both values, a phrase for the user
    """

    density: float | None
    compressed_fraction: float
    origin: str

    @property
    def ratio(self) -> float:
        """Return uncompressed over compressed bytes."""
        return 1 / self.compressed_fraction if self.compressed_fraction else float("inf")

    @property
    def is_dense(self) -> bool:
        return self.density == 1.0


@dataclass(frozen=True)
class FeatureMapRole:
    """The role of a feature map whose contents come from a source.

    Attributes
    ----------
    kind : ``"relu"`` (ReLU behind a CONV, also through joins and normalisation), ``"fc-relu"`` or ``"pool"``
    depth : relative depth along the longest path: 0 behind the first CONV, 1 behind the last; of ``"fc-relu"``, the
        same with FC layers
    """

    kind: str
    depth: float


def thinned(codec: Codec, contents: MapContents, retained_fraction: float, origin: str) -> MapContents:
    """Return the contents after more elements become zero, for example by dropout.

    The compressed size keeps its ratio to ZVC's size, which is exact, given the density.

    Parameters
    ----------
    retained_fraction : fraction of the nonzero elements that stay nonzero, 0 to 1
    origin : origin of the new contents
    """
    if contents.density is None:
        return replace(contents, compressed_fraction=contents.compressed_fraction * retained_fraction, origin=origin)
    from buddysim.compress.zvc import fraction_of_density as zvc_fraction

    density, before = contents.density * retained_fraction, zvc_fraction(contents.density, codec.masks)
    compressed_fraction = contents.compressed_fraction / before * zvc_fraction(density, codec.masks) if before else 0.0
    return MapContents(density, compressed_fraction, origin)


def roles(network: Network) -> dict[int, FeatureMapRole]:
    """Return the feature maps of a network whose contents a source may give, by layer index."""
    depths_by_layer = _depths_by_layer(network)
    role_by_layer = {}
    for layer in network.layers:
        fc, depth = depths_by_layer[layer.index]
        zeros = _zeros(layer)
        if zeros == "makes":
            role_by_layer[layer.index] = FeatureMapRole("fc-relu" if fc else "relu", depth)
        elif zeros == "pools":
            role_by_layer[layer.index] = FeatureMapRole("pool", depth)
    return role_by_layer


def depths(network: Network) -> list[float]:
    """Return the relative depth of every layer's feature map, among CONV layers or, behind an FC layer, FC layers."""
    return [depth for _, depth in _depths_by_layer(network)]


def _depths_by_layer(network: Network) -> list[tuple[bool, float]]:
    """Return for every layer whether an FC layer is before it with no CONV between, and its relative depth."""
    conv_depth: list[int] = []
    fc_depth: list[int] = []
    behind_fc: list[bool] = []
    for layer in network.layers:
        conv = max((conv_depth[i] for i in layer.inputs), default=0) + (layer.kind == "conv")
        fc = max((fc_depth[i] for i in layer.inputs), default=0) + (layer.kind == "fc")
        before = any(behind_fc[i] for i in layer.inputs)
        conv_depth.append(conv)
        fc_depth.append(fc)
        behind_fc.append(layer.kind == "fc" or (before and layer.kind != "conv"))
    deepest = max(conv_depth), max(fc_depth)
    return [
        (fc, _relative(fc_depth[at], deepest[1]) if fc else _relative(conv_depth[at], deepest[0]))
        for at, fc in enumerate(behind_fc)
    ]


def walk(
    network: Network,
    dense: MapContents,
    codec: Codec,
    sourced: Callable[[FeatureMapRole, Layer, MapContents], MapContents],
) -> dict[int, MapContents]:
    """Return the contents of every layer's output, by layer index.

    Parameters
    ----------
    dense : contents of a feature map without zeros
    codec : codec of the compressed fractions
    sourced : gives the contents of a feature map of `roles`, from its role, its layer and the contents of the layer's
        first input
    """
    with_role = roles(network)
    by_layer: dict[int, MapContents] = {}
    for layer in network.layers:
        index = layer.index
        before = by_layer[layer.inputs[0]] if layer.inputs else dense
        zeros = _zeros(layer)
        if zeros == "makes" or (zeros == "pools" and not before.is_dense and not _whole_map(network, layer)):
            by_layer[index] = sourced(with_role[index], layer, before)
        elif zeros == "keeps":
            by_layer[index] = before
        elif zeros == "drops":
            probability = dict(layer.attributes).get("probability", 0.5)
            assert isinstance(probability, int | float)
            by_layer[index] = thinned(codec, before, 1 - float(probability), f"{before.origin}, dropout")
        elif zeros == "pads":
            retained_fraction = min(network.layers[layer.inputs[0]].output_shape[0] / layer.output_shape[0], 1.0)
            by_layer[index] = thinned(codec, before, retained_fraction, f"{before.origin}, channels added")
        elif zeros == "joins":
            by_layer[index] = _joined(network, layer, by_layer)
        else:
            by_layer[index] = dense
    by_layer[0] = replace(dense, origin="the input image has no zeros")
    return by_layer


def mean_compressed_fraction(contents: Mapping[int, MapContents], sizes: Mapping[int, int]) -> float:
    """Return compressed over uncompressed bytes of all feature maps: the mean weighted by size.

    Parameters
    ----------
    contents : contents by layer index
    sizes : uncompressed bytes by layer index
    """
    total = sum(sizes.values())
    return sum(contents[index].compressed_fraction * size for index, size in sizes.items()) / total if total else 1.0


def _zeros(layer: Layer) -> Zeros:
    return "none" if layer.kind == "input" else kinds.REGISTRY.find(layer.kind).zeros


def _relative(depth: int, deepest: int) -> float:
    return (depth - 1) / (deepest - 1) if depth > 1 else 0.0


def _whole_map(network: Network, layer: Layer) -> bool:
    """Return whether a pooling window covers its whole input: an output is then zero only if its whole channel is."""
    pool, shape = layer.pool, network.layers[layer.inputs[0]].output_shape if layer.inputs else ()
    return pool is not None and len(shape) == 3 and pool.kernel_h >= shape[1] and pool.kernel_w >= shape[2]


def _joined(network: Network, layer: Layer, by_layer: Mapping[int, MapContents]) -> MapContents:
    inputs = [by_layer[i] for i in layer.inputs]
    sizes = [network.layers[i].output_elements for i in layer.inputs]
    total = sum(sizes)
    compressed_fraction = sum(part.compressed_fraction * size for part, size in zip(inputs, sizes, strict=True)) / total
    density: float | None = 0.0
    for part, size in zip(inputs, sizes, strict=True):
        density = None if density is None or part.density is None else density + part.density * size / total
    if all(part.is_dense for part in inputs):
        density = 1.0
    return MapContents(
        density, compressed_fraction, "joined: " + "; ".join(dict.fromkeys(part.origin for part in inputs))
    )
