"""The activations file: what the feature maps of a network held while it was trained; docs/activations.md defines it.

A file has the network's maps as `MapInfo`, and for points of the training (`Point`) each map's density and what
compressors make of it (`MapStatistics`), with some maps themselves. A capture of a training script writes one, and so
does `train --observe-activations`; whatever compresses maps reads one, and so do the figures of sparsity over training.
"""

from buddysim.formats.maps.activations import Activations
from buddysim.formats.maps.layout import ActivationsError
from buddysim.formats.maps.reader import load
from buddysim.formats.maps.records import CodeSize, MapInfo, MapStatistics, Point, code_sizes
from buddysim.formats.maps.writer import ActivationsWriter

__all__ = [
    "Activations",
    "ActivationsError",
    "ActivationsWriter",
    "CodeSize",
    "MapInfo",
    "MapStatistics",
    "Point",
    "code_sizes",
    "load",
]
