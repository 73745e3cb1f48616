"""The feature maps of an observed iteration: densities and compressed sizes for the activations file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from buddysim.capture.torch.recorder import Recorder, bytes_of, readable
from buddysim.compress.tensors import density, tensor_ratios
from buddysim.formats.activations import (
    ActivationsWriter,
    FeatureMapInfo,
    FeatureMapStatistics,
    TrainingPoint,
    payload_sizes,
)

#: Approximate bytes of each feature map that are compressed, in complete samples.
SIZED_BYTES = 2**16
MAX_SIZED_SAMPLES = 64

#: Kind of a feature map, by the name of the operator that writes it.
KINDS = {
    "convolution": "conv",
    "_convolution": "conv",
    "mkldnn_convolution": "conv",
    "addmm": "fc",
    "mm": "fc",
    "mkldnn_linear": "fc",
    "relu": "relu",
    "relu_": "relu",
    "threshold": "relu",
    "clamp_min": "relu",
    "clamp_min_": "relu",
    "hardtanh": "relu6",
    "hardtanh_": "relu6",
    "gelu": "gelu",
    "silu": "silu",
    "silu_": "silu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "leaky_relu": "leaky-relu",
    "max_pool2d_with_indices": "maxpool",
    "avg_pool2d": "avgpool",
    "_adaptive_avg_pool2d": "avgpool",
    "native_batch_norm": "batchnorm",
    "_native_batch_norm_legit": "batchnorm",
    "native_layer_norm": "layernorm",
    "native_group_norm": "groupnorm",
    "native_dropout": "dropout",
    "add": "add",
    "add_": "add",
    "cat": "concat",
}


@dataclass
class _RecordedMap:
    name: str
    kind: str
    follows: str
    conv: int
    fc: int
    values: npt.NDArray[Any]
    statistics: dict[str, Any] = field(default_factory=dict)


def values_of(tensor: torch.Tensor) -> npt.NDArray[np.float32] | None:
    """Return a float32 tensor as an array over its memory; None for other tensors."""
    storage = tensor.untyped_storage()
    if tensor.dtype != torch.float32 or not readable(storage) or not tensor.numel():
        return None
    words = bytes_of(storage)[: storage.nbytes() // 4 * 4].view(np.float32)
    strides = tuple(4 * stride for stride in tensor.stride())
    return np.lib.stride_tricks.as_strided(words[tensor.storage_offset() :], tuple(tensor.shape), strides)


class FeatureMapRecorder:
    """Collects the feature maps of each observed iteration and writes them.

    Parameters
    ----------
    path : of the activations file
    provenance : of the capture
    stored_samples : samples of each feature map whose values are stored
    """

    def __init__(self, path: Path, provenance: dict[str, str], stored_samples: int) -> None:
        self.path, self.provenance, self.stored_samples = path, provenance, stored_samples
        self._writer: ActivationsWriter | None = None
        self._numbers: dict[tuple[str, tuple[int, ...]], int] = {}
        self._maps: list[_RecordedMap] = []
        self._kinds: dict[int, str] = {}
        self._names: dict[tuple[str, str], int] = {}
        self._conv = self._fc = 0
        self._last = -1

    def begin(self) -> None:
        """Begin an observed iteration."""
        self._maps, self._kinds, self._names = [], {}, {}
        self._conv = self._fc = 0
        self._last = -1

    def add(self, recorder: Recorder, number: int, tensor: torch.Tensor) -> None:
        """Add an output of a forward operator if it is a feature map."""
        operator = recorder.operators[number]
        short = operator["name"].split(".")[1]
        kind = KINDS.get(short)
        inputs = [recorder.lies_in(index) for index in operator["inputs"]]
        follows = next((self._kinds[s] for s in inputs if s in self._kinds), "")
        if number == self._last or short in ("bernoulli_", "div_"):
            return  # a further output, such as statistics or indices; dropout's mask
        self._last = number
        output = recorder.number_of(tensor.untyped_storage())
        if kind is None and short == "mul" and recorder.dropping():
            kind = "dropout"
        if output is not None:
            self._kinds[output] = kind or follows
        values = values_of(tensor) if kind and tensor.dim() in (2, 3, 4) else None
        if values is None or kind is None or (short in ("add", "add_") and tensor.dim() == 2):
            return
        self._conv += kind == "conv"
        self._fc += kind == "fc"
        name = operator["module"] or "(outside)"
        count = self._names[name, kind] = self._names.get((name, kind), 0) + 1
        full = f"{name} {kind}" if count == 1 else f"{name} {kind} #{count}"
        self._maps.append(_RecordedMap(full, kind, follows, self._conv, self._fc, values))
        self._measure(self._maps[-1])

    def _measure(self, feature_map: _RecordedMap) -> None:
        """Compute statistics at once: the next operator may overwrite the feature map."""
        values = np.ascontiguousarray(feature_map.values)
        per_sample = max(values.nbytes // len(values), 1)
        samples = min(len(values), MAX_SIZED_SAMPLES, max(SIZED_BYTES // per_sample, 1))
        part = values[:samples] if values.ndim != 3 else values[:samples].reshape(samples, -1)
        if part.ndim == 4 and part.nbytes > SIZED_BYTES:  # of a large sample the rows in its middle, of all channels
            height = part.shape[2]
            rows = max(1, height * SIZED_BYTES // part.nbytes)
            part = part[:, :, (height - rows) // 2 : (height + rows) // 2]
        feature_map.statistics = {
            "elements": values.size,
            "nonzero": round(density(values) * values.size),
            "sizes": payload_sizes(tensor_ratios(part)),
            "sized_elements": part.size,
        }
        feature_map.values = values[: self.stored_samples].copy()

    def end(self, iteration: int, loss: float | None, learning_rate: float | None) -> None:
        """End the iteration, which becomes a point of the file."""
        if not self._maps:
            return
        if self._writer is None:
            self._writer = ActivationsWriter(self.path, self.provenance, self._infos(), keep_part=True)
            self._numbers = {(m.name, m.values.shape[1:]): n for n, m in enumerate(self._maps)}
        seen = {n: m for m in self._maps if (n := self._numbers.get((m.name, m.values.shape[1:]))) is not None}
        statistics = tuple(FeatureMapStatistics(n, **m.statistics) for n, m in sorted(seen.items()))
        samples = max((m.statistics["elements"] // int(np.prod(m.values.shape[1:])) for m in seen.values()), default=1)
        point = self._writer.add_point(TrainingPoint(iteration, 0.0, samples, statistics, loss, None, learning_rate))
        for number, feature_map in seen.items():
            if len(feature_map.values):
                self._writer.add_values(point, number, feature_map.values)
        self._maps = []

    def close(self, state: str, *, finished: bool) -> None:
        """End the file. If the script failed and the file exists already, the new one keeps the name OUT.incomplete."""
        if self._writer is not None:
            self._writer.close(state, put=finished or not self.path.exists())

    def _infos(self) -> list[FeatureMapInfo]:
        conv, fc = self._conv, self._fc
        infos = []
        for feature_map in self._maps:
            classifier = feature_map.fc > 0 and feature_map.conv == conv
            first_fc = min((m.fc for m in self._maps if m.conv == conv and m.fc), default=1)
            depth, deepest = (
                (feature_map.fc - first_fc, fc - first_fc) if classifier else (feature_map.conv - 1, conv - 1)
            )
            infos.append(
                FeatureMapInfo(
                    feature_map.name,
                    feature_map.kind,
                    tuple(feature_map.values.shape[1:]),
                    feature_map.follows,
                    feature_map.conv + feature_map.fc,
                    depth / deepest if depth > 0 else 0.0,
                    "classifier" if classifier else "features",
                )
            )
        return infos
