"""The networks of the vDNN paper, and what both papers state (``tools/papers/reference.toml``)."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

#: Label of the paper, network of the zoo, batch (vDNN, Sec. IV-C): the "conventional" ones.
SIX = (
    ("AlexNet (128)", "alexnet", 128),
    ("OverFeat (128)", "overfeat", 128),
    ("GoogLeNet (128)", "googlenet", 128),
    ("VGG-16 (64)", "vgg19", 64),
    ("VGG-16 (128)", "vgg19", 128),
    ("VGG-16 (256)", "vgg19", 256),
)
#: The very deep ones (vDNN, Sec. IV-C and V-E).
DEEP = tuple((f"VGG-{layers} (32)", f"vgg{layers}", 32) for layers in (116, 216, 316, 416))

GIB = 2**30


@cache
def stated() -> dict[str, dict[str, Any]]:
    """What the papers state, by id."""
    text = (resources.files("buddysim.papers") / "reference.toml").read_text(encoding="utf-8")
    return {number["id"]: number for number in tomllib.loads(text)["number"]}


def value(id: str) -> Any:
    """A number, or the two ends of a range."""
    return stated()[id]["value"]
