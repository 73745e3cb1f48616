"""Records of an activations file: feature maps, points of the training, and statistics of feature maps at points."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from buddysim.compress.tensors import TensorRatio

Count = Annotated[int, Field(ge=0, lt=2**62)]
Positive = Annotated[int, Field(ge=1, lt=2**40)]
Text = Annotated[str, Field(max_length=65536)]
_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class FeatureMapInfo:
    """A feature map of the network.

    Attributes
    ----------
    name : name of the layer that writes it last, as in the program
    kind : kind of that layer: ``"input"``, ``"conv"``, ``"fc"``, ``"relu"``, ``"maxpool"``, ``"dropout"``, ...
    shape : shape of one sample, (C, H, W) or (features,)
    follows : kind of the layer before it: of a ReLU ``"conv"``, ``"fc"``, ``"batchnorm"``, ``"add"``
    weight_layers : CONV and FC layers at or before it, along the order in which they ran
    depth : 0 behind the first CONV layer, 1 behind the last one; in the classifier the same with FC layers
    part : ``"features"``, or ``"classifier"`` from the first FC layer on
    """

    __pydantic_config__ = _STRICT

    name: Text
    kind: Text
    shape: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=3)]
    follows: Text = ""
    weight_layers: Count = 0
    depth: Annotated[float, Field(ge=0, le=1)] = 0.0
    part: Literal["features", "classifier"] = "features"

    @property
    def elements(self) -> int:
        """Return the elements of one sample."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class PayloadSize:
    """Compressed size of a feature map: the payload of all its windows, in bits.

    `mask_bits` of them are zero masks (ZVC). See `buddysim.compress.tensors`.
    """

    __pydantic_config__ = _STRICT

    algorithm: Text
    layout: Text
    window: Positive
    bits: Count
    mask_bits: Count = 0


@dataclass(frozen=True)
class FeatureMapStatistics:
    """Statistics of a feature map at one point of the training.

    Attributes
    ----------
    map : index of the feature map in the file
    elements, nonzero : elements and nonzero elements of all samples; a word is zero if all its bits are
    sizes : compressed sizes
    sized_elements : elements of the samples that were compressed
    """

    __pydantic_config__ = _STRICT

    map: Count
    elements: Positive
    nonzero: Count
    sizes: tuple[PayloadSize, ...] = ()
    sized_elements: Count = 0

    @property
    def density(self) -> float:
        """Return the fraction of nonzero elements."""
        return self.nonzero / self.elements

    def ratios(self) -> list[TensorRatio]:
        """Return the sizes as `buddysim.compress.tensors.tensor_ratios` gives them, for words of 4 bytes."""
        raw = 4 * self.sized_elements
        return [TensorRatio(s.algorithm, s.layout, s.window, raw, s.bits, s.mask_bits) for s in self.sizes]


@dataclass(frozen=True)
class TrainingPoint:
    """A point of the training.

    Attributes
    ----------
    iteration : optimizer steps before it
    epoch : passes over the data before it; 0 at every point where it is unknown
    samples : samples of the observed batch
    maps : statistics of the feature maps, in order
    loss : loss of the last training batch before it; None before the first, and if not finite
    accuracy : fraction of held-out samples that were classified correctly; None if not measured
    learning_rate : learning rate of the next step; None if unknown
    """

    __pydantic_config__ = _STRICT

    iteration: Count
    epoch: Annotated[float, Field(ge=0)]
    samples: Positive
    maps: tuple[FeatureMapStatistics, ...]
    loss: float | None = None
    accuracy: Annotated[float, Field(ge=0, le=1)] | None = None
    learning_rate: float | None = None

    def statistics(self, map: int) -> FeatureMapStatistics | None:
        """Return the statistics of one feature map; None if it was not observed at this point."""
        return next((statistics for statistics in self.maps if statistics.map == map), None)


@dataclass(frozen=True)
class EndRecord:
    """End of a file: its counts, and the reason why the capture ended."""

    __pydantic_config__ = _STRICT

    points: Count
    values: Count
    state: Text


PROVENANCE: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str], config=ConfigDict(strict=True))
MAPS = TypeAdapter(list[FeatureMapInfo])
POINT = TypeAdapter(TrainingPoint)
END = TypeAdapter(EndRecord)


def payload_sizes(ratios: Iterable[TensorRatio]) -> tuple[PayloadSize, ...]:
    """Return results of `buddysim.compress.tensors.tensor_ratios` in the form of a point's sizes."""
    return tuple(PayloadSize(r.algorithm, r.layout, r.window, r.bits, r.mask_bits) for r in ratios)
