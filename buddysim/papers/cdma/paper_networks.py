"""The networks that the cDMA paper trains."""

from __future__ import annotations

#: Network of the zoo and batch, by the paper's name (Table II): Caffe's variants where the zoo has several.
NETWORKS: dict[str, tuple[str, int]] = {
    "AlexNet": ("alexnet-caffe", 256),
    "OverFeat": ("overfeat", 256),
    "NiN": ("nin", 128),
    "VGG": ("vgg16", 128),
    "SqueezeNet": ("squeezenet", 512),
    "GoogLeNet": ("googlenet-caffe", 256),
}
