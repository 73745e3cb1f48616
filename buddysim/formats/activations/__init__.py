"""The activations file: what the feature maps of a network held while it was trained; docs/activations.md defines it.

A file has the network's maps as `FeatureMapInfo`, and for points of the training (`TrainingPoint`) each map's density and what
compressors make of it (`FeatureMapStatistics`), with some maps themselves. A capture of a training script writes one, and so
does `train --observe-activations`; whatever compresses maps reads one, and so do the figures of sparsity over training.
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
