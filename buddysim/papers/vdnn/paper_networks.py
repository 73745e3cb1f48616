"""The networks that the vDNN paper trains: label of the paper, network of the zoo, batch."""

from __future__ import annotations

#: The "conventional" ones (Sec. IV-C).
SIX = (
    ("AlexNet (128)", "alexnet", 128),
    ("OverFeat (128)", "overfeat", 128),
    ("GoogLeNet (128)", "googlenet", 128),
    ("VGG-16 (64)", "vgg19", 64),
    ("VGG-16 (128)", "vgg19", 128),
    ("VGG-16 (256)", "vgg19", 256),
)
#: The very deep ones (Sec. IV-C and V-E).
DEEP = tuple((f"VGG-{layers} (32)", f"vgg{layers}", 32) for layers in (116, 216, 316, 416))

GIB = 2**30
