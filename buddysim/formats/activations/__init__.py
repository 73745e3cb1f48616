"""The activations file: densities and sizes of feature maps during a training; docs/reference/activations-format.md
defines it.

A file lists the network's feature maps (`FeatureMapInfo`). For points of the training (`TrainingPoint`) it has the
density and compressed sizes of each feature map (`FeatureMapStatistics`), and some values. `capture torch` and
`train --observe-activations` write activations files. The training compressors and the figures of sparsity read them.
"""

from buddysim.formats.activations.activations_file import ActivationsFile
from buddysim.formats.activations.layout import ActivationsError
from buddysim.formats.activations.reader import load_activations
from buddysim.formats.activations.records import (
    FeatureMapInfo,
    FeatureMapStatistics,
    PayloadSize,
    TrainingPoint,
    payload_sizes,
)
from buddysim.formats.activations.writer import ActivationsWriter

__all__ = [
    "ActivationsError",
    "ActivationsFile",
    "ActivationsWriter",
    "FeatureMapInfo",
    "FeatureMapStatistics",
    "PayloadSize",
    "TrainingPoint",
    "load_activations",
    "payload_sizes",
]
